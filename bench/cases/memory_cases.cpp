#include "bench/cases/memory_cases.h"

#include <fmt/core.h>

#include "frontend/dsl.h"

namespace lathe::bench {

namespace {

constexpr std::int64_t table_rows = 50257;

/// A graph under construction. All of its tensors are states, so that runs allocate nothing.
class Case {
 public:
  Case(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns), g_("memory") {}

  Tensor matrix(const std::string& name) { return state(name, {rows_, columns_}); }
  Tensor row(const std::string& name) { return state(name, {columns_}); }
  Tensor scalar(const std::string& name) { return state(name, {}); }
  Tensor state(const std::string& name, const std::vector<std::int64_t>& sizes) {
    HostTensor value(f32, sizes);
    float* const data = value.as<float>().data();
    for (std::int64_t i = 0; i < value.numel(); ++i) data[i] = 0.001f * static_cast<float>(i % 4093) - 2;
    case_.states.set(name, std::move(value));
    return g_.state(name, f32, shape_of(sizes));
  }
  /// Integers below `limit`, one per row.
  Tensor numbers(const std::string& name, std::int64_t limit) {
    HostTensor value(i64, {rows_});
    for (std::int64_t i = 0; i < rows_; ++i) value.set_int(i, i * 7919 % limit);
    case_.inputs.set(name, std::move(value));
    return g_.input(name, i64, shape_of({rows_}));
  }
  /// Integers below `limit`, one per element of the matrix.
  Tensor number_matrix(const std::string& name, std::int64_t limit) {
    HostTensor value(i64, {rows_, columns_});
    for (std::int64_t i = 0; i < size(); ++i) value.set_int(i, i * 7919 % limit);
    case_.inputs.set(name, std::move(value));
    return g_.input(name, i64, shape_of({rows_, columns_}));
  }
  /// Stores a result in its own state.
  void keep(const std::string& name, const Tensor& value) {
    std::vector<std::int64_t> sizes;
    for (int d = 0; d < value.rank(); ++d) sizes.push_back(*value.shape()[d].value());
    g_.update(state(name, sizes), value);
  }

  Graph& graph() { return g_; }
  std::int64_t size() const { return rows_ * columns_; }

  MemoryCase finish(std::vector<Sweep> sweeps) {
    case_.graph = g_.finish();
    case_.sweeps = std::move(sweeps);
    return std::move(case_);
  }

 private:
  static Shape shape_of(const std::vector<std::int64_t>& sizes) {
    Shape shape;
    for (const std::int64_t size : sizes) shape.push_back(Dim(size));
    return shape;
  }

  std::int64_t rows_, columns_;
  MemoryCase case_;
  Graph g_;
};

using Apply = Tensor (*)(Case& c, const Tensor& x);

MemoryCase forward(Apply apply, std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  c.keep("y", apply(c, c.matrix("x")));
  return c.finish({{.reads = 1, .writes = 1, .count = c.size()}});
}

/// Computes the gradient of x, and of the weights if the op has any, from x and the gradient of the result.
MemoryCase backward(Apply apply, std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  const Tensor x = c.matrix("x"), y = apply(c, x), dy = c.matrix("dy");
  std::vector<Tensor> wrt = {x};
  for (const ir::ValueId id : c.graph().ir().arguments())
    if (c.graph().ir()[id].name == "weight" || c.graph().ir()[id].name == "bias")
      wrt.emplace_back(ir::Value(c.graph().builder(), id));
  const std::vector<Tensor> gradients = grad(y, wrt, dy);
  for (std::size_t i = 0; i < wrt.size(); ++i) c.keep(fmt::format("gradient_{}", i), gradients[i]);
  return c.finish({{.reads = 2, .writes = 1, .count = c.size()}});
}

Tensor apply_softmax(Case&, const Tensor& x) { return softmax(x, -1); }
Tensor apply_layer_norm(Case& c, const Tensor& x) { return layer_norm(x, c.row("weight"), c.row("bias")); }
Tensor apply_rms_norm(Case& c, const Tensor& x) { return rms_norm(x, c.row("weight")); }
Tensor apply_gelu(Case&, const Tensor& x) { return gelu(x, true); }

/// Uses the softmax's result, which is saved for backward.
MemoryCase softmax_backward(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  const Tensor y = c.matrix("y"), dy = c.matrix("dy");
  c.keep("dx", y * (dy - (y * dy).sum({-1}, true)));
  return c.finish({{.reads = 2, .writes = 1, .count = c.size()}});
}

MemoryCase transpose_copy(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  c.keep("y", c.matrix("x").transpose(0, 1).contiguous());
  return c.finish({{.reads = 1, .writes = 1, .count = c.size()}});
}

MemoryCase transpose_add(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  c.keep("y", c.matrix("x").transpose(0, 1) + c.state("z", {columns, rows}));
  return c.finish({{.reads = 2, .writes = 1, .count = c.size()}});
}

/// Takes one element per column of each row. Indices are i64, which counts as two reads of f32.
MemoryCase take_along_rows(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  c.keep("y", take_along(c.matrix("x"), c.number_matrix("indices", columns), 1));
  return c.finish({{.reads = 3, .writes = 1, .count = c.size()}});
}

MemoryCase cross_entropy_forward(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  c.keep("loss", cross_entropy(c.matrix("logits"), c.numbers("targets", columns)));
  return c.finish({{.reads = 1, .writes = 0, .count = c.size()}});
}

MemoryCase cross_entropy_both(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  const Tensor logits = c.matrix("logits");
  const Tensor loss = cross_entropy(logits, c.numbers("targets", columns));
  c.keep("loss", loss);
  c.keep("dlogits", grad(loss, {logits})[0]);
  return c.finish({{.reads = 1, .writes = 1, .count = c.size()}});
}

MemoryCase adamw(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  const Tensor p = c.matrix("p"), gradient = c.matrix("gradient");
  HostTensor step = HostTensor::from_ints({}, {10});
  const Tensor count = c.graph().state("count", i64, {});
  const OptimizerStep shared{
      .count = count.to(f64),
      .rate = c.graph().constant(1e-4, f64),
      .scope = "optimizer",
      .update = [&](const ir::Value& state, const ir::Value& value) { c.graph().builder().update(state, value); }};
  ParameterUpdate update(shared, p.value(), gradient.value(), true);
  Optimizer(AdamW{}).add_updates({&update, 1});
  MemoryCase made = c.finish({{.reads = 4, .writes = 3, .count = c.size(), .in_place = true}});
  made.states.set("count", step);
  for (const char* moment : {"optimizer.m.p", "optimizer.v.p"})
    made.states.set(moment, HostTensor(f32, {rows, columns}));
  return made;
}

MemoryCase norm_of_gradients(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  const ir::Value gradient = c.matrix("gradient").value();
  c.keep("norm", Tensor(global_norm({&gradient, 1})));
  return c.finish({{.reads = 1, .writes = 0, .count = c.size()}});
}

MemoryCase embedding_forward(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  const Tensor table = c.state("table", {table_rows, columns});
  c.keep("y", embedding(c.numbers("ids", table_rows), table));
  return c.finish({{.reads = 1, .writes = 1, .count = c.size()}});
}

MemoryCase embedding_backward(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  const Tensor table = c.state("table", {table_rows, columns});
  const Tensor y = embedding(c.numbers("ids", table_rows), table);
  c.keep("dtable", grad(y, {table}, c.matrix("dy"))[0]);
  return c.finish(
      {{.reads = 0, .writes = 1, .count = table_rows * columns}, {.reads = 1, .writes = 0, .count = c.size()}});
}

/// The gradient of a bias.
MemoryCase column_sums(std::int64_t rows, std::int64_t columns) {
  Case c(rows, columns);
  c.keep("sums", c.matrix("dy").sum({0}));
  return c.finish({{.reads = 1, .writes = 0, .count = c.size()}});
}

template <Apply apply>
MemoryCase make_forward(std::int64_t rows, std::int64_t columns) {
  return forward(apply, rows, columns);
}
template <Apply apply>
MemoryCase make_backward(std::int64_t rows, std::int64_t columns) {
  return backward(apply, rows, columns);
}

}  // namespace

const std::vector<MemoryOp>& memory_ops() {
  static const std::vector<MemoryOp> ops = {
      {"softmax", make_forward<apply_softmax>},
      {"softmax backward", softmax_backward},
      {"layer norm", make_forward<apply_layer_norm>},
      {"layer norm backward", make_backward<apply_layer_norm>},
      {"rms norm", make_forward<apply_rms_norm>},
      {"rms norm backward", make_backward<apply_rms_norm>},
      {"gelu", make_forward<apply_gelu>},
      {"gelu backward", make_backward<apply_gelu>},
      {"cross entropy", cross_entropy_forward},
      {"cross entropy + gradient", cross_entropy_both},
      {"column sums", column_sums},
      {"AdamW", adamw},
      {"global norm", norm_of_gradients},
      {"embedding", embedding_forward},
      {"embedding backward", embedding_backward},
      {"transpose", transpose_copy},
      {"transpose and add", transpose_add},
      {"take along", take_along_rows},
  };
  return ops;
}

}  // namespace lathe::bench
