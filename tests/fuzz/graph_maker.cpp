#include "tests/fuzz/graph_maker.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/autodiff/autodiff.h"
#include "passes/check/made_up_value.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::fuzz {

using namespace ir;

namespace {

/// Sizes of the symbolic dims: ordinary ones, and then two bindings with edge cases and primes.
std::vector<DimBindings> random_sizes(std::mt19937& random, bool wide) {
  if (wide) {
    const auto draw = [&] {
      return static_cast<std::int64_t>(random() % 4 ? 90 + random() % 140 : 1 + random() % 90);
    };
    return {{{"n", static_cast<std::int64_t>(1 + random() % 3)}, {"m", draw()}, {"k", draw()}}};
  }
  static constexpr std::array<std::int64_t, 12> choices = {0, 1, 1, 2, 3, 5, 7, 8, 9, 13, 17, 31};
  const auto draw = [&] { return choices[random() % choices.size()]; };
  std::vector<DimBindings> sizes = {{{"n", 2}, {"m", 3}, {"k", 5}}};
  for (int i = 0; i < 2; ++i) sizes.push_back({{"n", draw()}, {"m", draw()}, {"k", draw()}});
  return sizes;
}

/// Turns some arguments into states or parameters, most of which are updated by a value of their type.
void add_updates(ir::Graph& graph, std::mt19937& random) {
  for (const ValueId state : graph.arguments()) {
    if (graph[state].op != &ops::input || random() % 2) continue;
    std::vector<ValueId> fitting;
    for (const ValueId id : all_values(graph))
      if (graph[id].type.dtype == graph[state].type.dtype && graph[id].type.shape == graph[state].type.shape &&
          id != state)
        fitting.push_back(id);
    graph[state].op = random() % 2 ? &ops::state : &ops::parameter;
    if (!fitting.empty()) graph.updates.push_back({state, fitting[random() % fitting.size()]});
  }
}

/// Multiplies each float argument by its own power of ten, which depends on its name and the seed; one in four is
/// unchanged.
Tensors scaled(Tensors arguments, unsigned seed) {
  for (auto& [name, tensor] : arguments) {
    if (!is_float(tensor.dtype())) continue;
    std::vector<unsigned> key(name.begin(), name.end());
    key.push_back(seed);
    std::seed_seq mixed(key.begin(), key.end());
    std::mt19937 random(mixed);
    const int power = random() % 4 ? std::uniform_int_distribution<int>(least_power, largest_power)(random) : 0;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, tensor.get(i) * std::pow(10.0, power));
  }
  return arguments;
}

}  // namespace

bool broadcasts(const Shape& a, const Shape& b) {
  for (int k = 1; k <= std::min(a.rank(), b.rank()); ++k) {
    const Dim &x = a[a.rank() - k], &y = b[b.rank() - k];
    if (!(x == y) && !x.is(1) && !y.is(1)) return false;
  }
  return true;
}

bool broadcasts_into(const Shape& a, const Shape& b) {
  if (!broadcasts(a, b) || a.rank() > b.rank()) return false;
  for (int k = 1; k <= a.rank(); ++k)
    if (!a[a.rank() - k].is(1) && !(a[a.rank() - k] == b[b.rank() - k])) return false;
  return true;
}

GraphMaker::GraphMaker(unsigned seed, const GraphKind& kind)
    : seed_(seed),
      ops_(kind.ops),
      wide_(kind.wide),
      scaled_(kind.scaled),
      random_(seed),
      builder_("fuzz"),
      sizes_(random_sizes(random_, wide_)) {
  part_ = wide_ ? any_of(std::vector<int>{24, 32, 64, 96}) : 2;
  width_ = 2 * part_;
  known_ = wide_ && one_in(2);
  const int dtype = wide_ || scaled_ ? 9 + below(scaled_ ? 8 : 10) : below(20);
  real_ = dtype < 11 ? f64 : dtype < 17 ? f32 : dtype < 19 ? bf16 : f16;
}

Dim GraphMaker::late(const char* name) const { return known_ ? Dim(sizes_.front().at(name)) : Dim(name); }

Dim GraphMaker::any_size() {
  switch (below(9)) {
    case 0:
    case 1: return late("n");
    case 2:
    case 3: return late("m");
    case 4: return late("k");
    case 5: return 1;
    case 6: return Dim("h", 2);
    case 7: return wide_ ? 1 : 3;
    default: return width_;
  }
}

DType GraphMaker::other_float() {
  if (scaled_) return one_in(3) ? f64 : f32;
  return any_of(std::vector<DType>{f64, f32, f32, bf16, f16});
}

std::vector<std::int64_t> GraphMaker::any_dims(const Value& a) {
  std::vector<std::int64_t> dims;
  for (int d = 0; d < a.rank(); ++d)
    if (one_in(2)) dims.push_back(one_in(3) ? d - a.rank() : d);
  if (dims.empty()) dims.push_back(any_dim(a));
  return dims;
}

Value GraphMaker::pick_float() {
  const Maybe found = pick([&](const Item& item) { return item.value.dtype() == real_; });
  return found ? *found : pool_.front().value;
}

GraphMaker::Maybe GraphMaker::pick_like(const Value& a) {
  return pick(
      [&](const Item& item) { return item.value.dtype() == a.dtype() && broadcasts(item.value.shape(), a.shape()); });
}

GraphMaker::Maybe GraphMaker::pick_same(const Value& a) {
  return pick([&](const Item& item) { return item.value.dtype() == a.dtype() && item.value.shape() == a.shape(); });
}

GraphMaker::Maybe GraphMaker::pick_steady(const Value* like) {
  return pick([&](const Item& item) {
    return is_float(item.value.dtype()) && (item.exact || (real_ == f64 && item.value.dtype() == f64)) &&
           (!like || broadcasts(item.value.shape(), like->shape()));
  });
}

GraphMaker::Maybe GraphMaker::pick_kind(bool (*kind)(DType)) {
  return pick([&](const Item& item) { return kind(item.value.dtype()); });
}

bool GraphMaker::exact(const Value& a) const {
  const auto at = std::find_if(pool_.begin(), pool_.end(), [&](const Item& i) { return i.value.id() == a.id(); });
  return at != pool_.end() && at->exact;
}

bool GraphMaker::small(const Shape& shape) const {
  const std::int64_t most_elements = wide_ ? 400'000 : 6000;
  if (shape.rank() > 5) return false;
  return std::all_of(sizes_.begin(), sizes_.end(),
                     [&](const DimBindings& dims) { return shape.numel().evaluate(dims) <= most_elements; });
}

/// Views of exact values are exact, and so are integers and booleans, because they are only computed from exact
/// values.
bool GraphMaker::keep(const Maybe& made) {
  if (!made || !small(made->shape()) || is_complex(made->dtype())) return false;
  const Node& node = made->node();
  const bool moves = node.op->as<View>() || node.op == &ops::reshape || node.op == &ops::contiguous ||
                     node.op == &ops::neg || node.op == &ops::abs;
  const bool steady =
      !is_float(made->dtype()) || (moves && exact(Value(builder_, node.operands[0]))) || node.op == &ops::iota;
  pool_.push_back({*made, steady});
  return true;
}

void GraphMaker::add_arguments() {
  const Dim n = late("n"), m = late("m"), k = late("k");
  std::vector<Shape> shapes = {{n, m},         {m, width_}, {n, m, width_}, {width_},
                               {2, 1, width_}, {m, m},      {n, k, width_}, {width_, width_}};
  for (int i = 0; i < 3; ++i) {
    Shape shape;
    for (int rank = below(5); rank > 0; --rank) shape.push_back(any_size());
    if (small(shape)) shapes.push_back(shape);
  }
  const auto argument = [&](DType dtype, const Shape& shape) {
    const Value value = builder_.argument(ops::input, fmt::format("x{}", pool_.size()), dtype, shape);
    pool_.push_back({value, true});
    return value;
  };
  argument(real_, {n, width_});
  for (const Shape& shape : shapes) argument(one_in(8) ? other_float() : real_, shape);
  argument(boolean, one_in(2) ? Shape{n, m} : Shape{m, m});
  argument(i32, {n, m});
  for (const Shape& shape : {Shape{3}, Shape{n, m}, Shape{}}) indices_.push_back(argument(i64, shape));
  random_state_ = builder_.argument(ops::state, "rng", i64, {2});
}

Case GraphMaker::run() {
  add_arguments();
  const std::size_t wanted = pool_.size() + static_cast<std::size_t>(ops_);
  for (int tries = 0; pool_.size() < wanted && tries < 100 * ops_; ++tries) keep(step());
  finish();
  Case made{.seed = seed_, .graph = builder_.finish(), .sizes = sizes_, .scaled = scaled_};
  const int order = below(16);
  if (order == 0) {
    const ir::Graph first =
        differentiate(made.graph, {.outputs = {{"loss", ""}}, .wrt = {"x1"}, .unused = Unused::zeros});
    made.graph = differentiate(first, {.outputs = {{"grad.x1", ""}}, .wrt = {"x2"}, .unused = Unused::zeros});
  } else if (order > 2) {
    made.graph = differentiate(made.graph, {.outputs = {{"loss", ""}}, .unused = Unused::zeros});
  }
  add_updates(made.graph, random_);
  return made;
}

GraphMaker::Maybe GraphMaker::step() {
  static const std::vector<int> heavy = {22, 23, 24, 25, 29, 29, 33};
  switch (wide_ && one_in(2) ? any_of(heavy) : below(34)) {
    case 0:
    case 1:
    case 2: return unary();
    case 3:
    case 4:
    case 5: return binary();
    case 6: return integer();
    case 7: return truth();
    case 8: return conversion();
    case 9: return source();
    case 10:
    case 11:
    case 12:
    case 13: return view_of(pick([](const Item&) { return true; }).value());
    case 14:
    case 15: return reshaped(pick([](const Item&) { return true; }).value());
    case 16: return sliced(pick([](const Item&) { return true; }).value());
    case 17:
    case 18:
    case 19: return reduction(pick([](const Item& i) { return i.value.dtype() != boolean; }).value());
    case 20: return joined(pick([](const Item&) { return true; }).value());
    case 21: return indexed(pick([](const Item&) { return true; }).value());
    case 22:
    case 23:
    case 24: return product();
    case 25: return normalized(pick_float());
    case 26: return masked(pick_float());
    case 27: return complex_of(pick_float());
    case 28: return training_loss(pick_float());
    case 30: return one_in(2) ? rounded_constant() : rounded_once();
    case 31: return integer_extreme();
    case 32: return triangular(pick_float());
    case 33: return loop_over(pick_float());
    default: return attention_block();
  }
}

/// tanh bounds the terms of the loss, so that none dominates.
void GraphMaker::finish() {
  std::optional<Value> loss;
  int floats = 0;
  for (std::size_t i = pool_.size(); i-- > 0 && (floats < 3 || !loss);) {
    const Value& value = pool_[i].value;
    if (pool_.size() - i <= 4 || is_float(value.dtype())) builder_.output(fmt::format("y{}", i), value);
    if (!is_float(value.dtype())) continue;
    const Value part = sum(tanh(cast(value, real_)));
    loss = loss ? add(*loss, part) : part;
    ++floats;
  }
  builder_.output("loss", *loss);
}

Tensors arguments_of(const Case& from, const DimBindings& dims) {
  if (from.tame) {
    Tensors arguments;
    for (const ValueId id : from.graph.arguments())
      arguments.emplace(from.graph[id].name, made_up_value(from.graph, id, dims, from.seed));
    return arguments;
  }
  Tensors made = test::random_arguments(from.graph, dims, from.seed, top_integer);
  return from.scaled ? scaled(std::move(made), from.seed) : made;
}

Case random_case(unsigned seed, const GraphKind& kind) { return GraphMaker(seed, kind).run(); }

}  // namespace lathe::fuzz
