#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "ir/ops/collectives.h"
#include "ir/tensor/interpret/interpreter.h"
#include "tests/ops/samples.h"
#include "tests/shard/support.h"

/// Every op record, with every dim of every operand sharded over meshes, compared with one process.
namespace lathe::shard::test {

namespace {

using ir::Op;
using ir::Sample;
using ir::ValueId;

/// A dim of an operand.
struct OperandDim {
  std::size_t operand;
  int dim;
};

std::vector<OperandDim> dims_of(const Sample& sample) {
  std::vector<OperandDim> operand_dims;
  for (std::size_t i = 0; i < sample.operands.size(); ++i)
    for (std::size_t d = 0; d < sample.operands[i].sizes.size(); ++d)
      if (sample.operands[i].sizes[d] > 1) operand_dims.push_back({i, static_cast<int>(d)});
  return operand_dims;
}

std::int64_t size_at(const Sample& sample, const OperandDim& operand_dim) {
  return sample.operands[operand_dim.operand].sizes[static_cast<std::size_t>(operand_dim.dim)];
}

/// Returns the sample as a graph. The dims in `named` are named s0, s1, ..
ir::Graph named_graph(const Op& op, const Sample& sample, const std::vector<OperandDim>& named) {
  ir::GraphBuilder builder("sample");
  std::vector<ir::Value> operands;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    Shape shape;
    for (std::size_t d = 0; d < sample.operands[i].sizes.size(); ++d) {
      Dim size(sample.operands[i].sizes[d]);
      for (std::size_t k = 0; k < named.size(); ++k)
        if (named[k].operand == i && named[k].dim == static_cast<int>(d)) size = size.named(fmt::format("s{}", k));
      shape.push_back(size);
    }
    operands.push_back(builder.argument(ir::ops::input, fmt::format("x{}", i), sample.operands[i].dtype, shape));
  }
  builder.output("y", builder.add(op, operands, sample.attrs));
  return builder.finish();
}

/// Returns a graph with the sample's operands as constants, which no named dim shards. Dim `dim` of the state that
/// stores the result is s0.
ir::Graph constants_to_state(const Op& op, const Sample& sample, const std::vector<HostTensor>& values, int dim) {
  ir::GraphBuilder builder("sample");
  std::vector<ir::Value> operands;
  for (const HostTensor& tensor : values) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) numbers.push_back(tensor.get(i));
    Shape shape;
    for (const std::int64_t size : tensor.shape()) shape.push_back(Dim(size));
    operands.push_back(
        builder.add(ir::ops::constant, {}, {{"values", numbers}, {"shape", shape}, {"dtype", tensor.dtype()}}));
  }
  const ir::Value y = builder.add(op, operands, sample.attrs);
  Shape shape = y.shape();
  shape.set(dim, shape[dim].named("s0"));
  builder.update(builder.argument(ir::ops::state, "kept", y.dtype(), shape), y);
  builder.output("y", y);
  return builder.finish();
}

struct Tally {
  int same = 0, refused = 0;
};

/// Checks that a sample sharded over `mesh` gives the results of one process. It may be rejected if a rule needs all
/// of a dim.
void check(const Op& op, const ir::Graph& graph, const Tensors& arguments, const std::string& mesh,
           const std::string& splits, std::map<std::string, Tally>& tallies) {
  static const std::set<std::string> may_refuse = {"shard_gather", "shard_repeat", "shard_divide", "shard_lookup",
                                                   "shard_axis"};
  Tally& tally = tallies[std::string(op.name.value)];
  CAPTURE(mesh, splits, ir::print(graph));
  std::optional<Sharded> sharded;
  try {
    sharded = divided(graph, mesh, splits);
  } catch (const UserError& error) {
    CAPTURE(error.what());
    CHECK(may_refuse.count(error.label()) == 1);
    ++tally.refused;
    return;
  }
  CAPTURE(ir::print(sharded->graph));
  const ir::InterpretOptions exact{.round = false};
  const HostTensor expected = ir::interpret(graph, arguments, exact).at("y");
  CHECK(ir::test::distance(simulate(*sharded, arguments, exact).at("y"), expected) <= 1e-12);
  ++tally.same;
}

void check(const Op& op, const Sample& sample, const std::vector<OperandDim>& operand_dims, const std::string& mesh,
           const std::string& splits, std::map<std::string, Tally>& tallies) {
  check(op, named_graph(op, sample, operand_dims), ir::test::arguments_of(ir::test::random_operands(sample)), mesh,
        splits, tallies);
}

/// Returns `ranks` partial sums of `value`, one per process, all of which differ from it.
HostTensor shares_of(const HostTensor& value, std::int64_t ranks) {
  std::vector<std::int64_t> sizes = value.shape();
  sizes.insert(sizes.begin(), ranks);
  HostTensor partials(value.dtype(), sizes);
  for (std::int64_t r = 0; r < ranks; ++r)
    for (std::int64_t i = 0; i < value.numel(); ++i)
      partials.set(r * value.numel() + i, value.get(i) * (r == 0 ? static_cast<double>(ranks) : -1.0));
  return partials;
}

/// Returns the sample with the operands in `shared` as sums over a dim s0. For a floating-point result the output is
/// a weighted sum, so that combining partial values earlier is expensive; `whole`: the output is the result itself.
ir::Graph behind_sums(const Op& op, const Sample& sample, const std::vector<bool>& shared, std::int64_t ranks,
                      bool whole) {
  ir::GraphBuilder builder("sample");
  std::vector<ir::Value> operands;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    Shape shape;
    if (shared[i]) shape.push_back(Dim("s0", ranks));
    for (const std::int64_t size : sample.operands[i].sizes) shape.push_back(Dim(size));
    const ir::Value x = builder.argument(ir::ops::input, fmt::format("x{}", i), sample.operands[i].dtype, shape);
    operands.push_back(shared[i] ? ir::sum(x, {0}) : x);
  }
  const ir::Value y = builder.add(op, operands, sample.attrs);
  builder.output("y", whole ? y : ir::sum(ir::mul(y, builder.argument(ir::ops::input, "w", y.dtype(), y.shape()))));
  return builder.finish();
}

/// Whether only single elements are combined.
bool takes_partials(const ir::Graph& divided) {
  return std::ranges::all_of(divided.nodes, [](const ir::Node& node) {
    return node.op != &ir::ops::all_reduce || node.type.shape.numel().is(1);
  });
}

/// Selects floating-point operands of a sample: each one alone, and all of them.
std::vector<std::vector<bool>> choices_of_shared(const Sample& sample) {
  std::vector<std::vector<bool>> choices;
  std::vector<bool> all(sample.operands.size(), false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_float(sample.operands[i].dtype)) continue;
    choices.emplace_back(all.size(), false);
    choices.back()[i] = all[i] = true;
  }
  if (choices.size() > 1) choices.push_back(all);
  return choices;
}

template <class F>
void for_each_plain_sample(F f) {
  for (const Op* op : ir::all_ops()) {
    if (op->as<ir::Argument>() || ir::is_collective(*op)) continue;
    for (const Sample& sample : ir::samples_of(*op)) f(*op, sample);
  }
}

}  // namespace

TEST_CASE("shard: every op with any dim split matches one process") {
  std::map<std::string, Tally> tallies;
  for_each_plain_sample([&](const Op& op, const Sample& sample) {
    for (const OperandDim& operand_dim : dims_of(sample))
      for (const std::int64_t ranks : {2, 3, 4})
        if (size_at(sample, operand_dim) % ranks == 0)
          check(op, sample, {operand_dim}, fmt::format("m={}", ranks), "s0:m", tallies);
  });
  int seen = 0;
  for (const auto& [name, tally] : tallies) {
    CAPTURE(name);
    const Op& op = *ir::find_op(name);
    const auto* reduce = op.as<ir::Reduce>();
    const bool multiplies = reduce && reduce->combine == ScalarOp::mul;  // processes do not combine products
    if (op.as<ir::Elementwise>() || (reduce && !multiplies)) CHECK(tally.refused == 0);
    if (multiplies) CHECK((tally.same > 0 && tally.refused > 0));
    if (op.as<ir::Contraction>()) CHECK(tally.same > tally.refused);
    seen += tally.same;
  }
  CHECK(seen > 500);
  for (const std::string name : {"cholesky", "solve_triangular", "orthonormal_basis",
                                 "eigenvectors"}) {  // batches are split, matrices are not
    CAPTURE(name);
    CHECK((tallies[name].same > 0 && tallies[name].refused > 0));
  }
}

TEST_CASE("shard: every op with two dims split over two axes matches one process") {
  std::map<std::string, Tally> tallies;
  for_each_plain_sample([&](const Op& op, const Sample& sample) {
    const std::vector<OperandDim> operand_dims = dims_of(sample);
    for (std::size_t i = 0; i < operand_dims.size(); ++i)
      for (std::size_t j = 0; j < operand_dims.size(); ++j) {
        const std::int64_t a = size_at(sample, operand_dims[i]), b = size_at(sample, operand_dims[j]);
        if (i == j || a > 4 || b > 4) continue;
        check(op, sample, {operand_dims[i], operand_dims[j]}, fmt::format("m={},n={}", a, b), "s0:m,s1:n", tallies);
      }
  });
  int seen = 0;
  for (const auto& [name, tally] : tallies) seen += tally.same;
  CHECK(seen > 300);
}

TEST_CASE("shard: every op after sums over a split dim matches one process") {
  std::map<std::string, Tally> tallies;
  std::set<std::string> passes_on;  // ops that returned partial values for partial values
  for_each_plain_sample([&](const Op& op, const Sample& sample) {
    const std::vector<HostTensor> values = ir::test::random_operands(sample);
    const ir::Graph plain = named_graph(op, sample, {});
    const ir::TensorType& type = plain[plain.outputs[0].value].type;
    for (const std::vector<bool>& shared : choices_of_shared(sample))
      for (const std::int64_t ranks : {2, 3}) {
        Tensors arguments;
        for (std::size_t i = 0; i < values.size(); ++i)
          arguments.emplace(fmt::format("x{}", i), shared[i] ? shares_of(values[i], ranks) : values[i]);
        const std::string mesh = fmt::format("m={}", ranks);
        check(op, behind_sums(op, sample, shared, ranks, true), arguments, mesh, "s0:m", tallies);
        if (!is_float(type.dtype)) continue;
        std::mt19937 generator(2);
        arguments.emplace("w", ir::test::random_tensor({type.shape.evaluate({}), type.dtype}, generator));
        const ir::Graph weighted = behind_sums(op, sample, shared, ranks, false);
        check(op, weighted, arguments, mesh, "s0:m", tallies);
        if (values[0].numel() > 1 && takes_partials(divided(weighted, mesh, "s0:m").graph))
          passes_on.insert(std::string(op.name.value));
      }
  });
  for (const auto& [name, tally] : tallies) {
    CAPTURE(name);
    CHECK(tally.refused == 0);
  }
  for (const char* name : {"neg", "add", "sub", "mul", "div", "where", "cast", "contiguous", "sum", "contract",
                           "view", "transpose", "expand", "slice", "gather", "concat", "scatter_add", "pad"}) {
    CAPTURE(name);
    CHECK(passes_on.count(name) == 1);
  }
  for (const char* name : {"exp", "abs", "max", "pow", "maximum", "cumsum", "linear_recurrence"}) {
    CAPTURE(name);
    CHECK(passes_on.count(name) == 0);
  }
}

TEST_CASE("shard: every op of constants with a split result matches one process") {
  std::map<std::string, Tally> tallies;
  for_each_plain_sample([&](const Op& op, const Sample& sample) {
    if (sample.operands.empty()) return;
    const std::vector<HostTensor> values = ir::test::random_operands(sample);
    if (std::ranges::any_of(values, [](const HostTensor& value) { return is_complex(value.dtype()); })) return;
    const ir::Graph whole = named_graph(op, sample, {});
    const ir::TensorType& type = whole[whole.outputs[0].value].type;
    for (int d = 0; d < type.rank(); ++d)
      for (const std::int64_t ranks : {2, 3})
        if (const auto size = type.shape[d].value(); size && *size > 1 && *size % ranks == 0)
          check(op, constants_to_state(op, sample, values, d),
                {{"kept", HostTensor(type.dtype, type.shape.evaluate({}))}}, fmt::format("m={}", ranks), "s0:m",
                tallies);
  });
  for (const std::string_view whole :
       {"cumsum", "linear_recurrence", "argsort", "top_k", "grouped_matmul", "cholesky"}) {
    CAPTURE(whole);
    CHECK(tallies[std::string(whole)].refused > 0);
  }
  int seen = 0;
  for (const auto& [name, tally] : tallies) {
    CAPTURE(name);
    if (ir::find_op(name)->as<ir::Elementwise>()) CHECK(tally.refused == 0);
    seen += tally.same;
  }
  CHECK(seen > 300);
}

}  // namespace lathe::shard::test
