#include "frontend/graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/built.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"

namespace lathe {

namespace {
std::string join(std::string_view scope, std::string_view name) {
  return scope.empty() ? std::string(name) : fmt::format("{}.{}", scope, name);
}
}  // namespace

void detail::GraphState::note_frozen_mark(const std::string& parameter, std::shared_ptr<const bool> is_frozen) {
  auto& marks = frozen_marks_[parameter];
  if (std::ranges::find(marks, is_frozen) == marks.end()) marks.push_back(std::move(is_frozen));
}

bool detail::GraphState::is_frozen(std::string_view parameter) const {
  const auto found = frozen_marks_.find(parameter);
  return found != frozen_marks_.end() && std::ranges::any_of(found->second, [](const auto& mark) { return *mark; });
}

std::shared_ptr<detail::GraphState> detail::state_of(const Graph& graph) {
  if (!graph.state_) Graph::throw_moved(Where::current());
  return graph.state_;
}

std::shared_ptr<detail::GraphState> detail::around_loops(const std::shared_ptr<GraphState>& body) {
  std::shared_ptr<GraphState> graph = body;
  while (graph->outer()) graph = std::dynamic_pointer_cast<GraphState>(graph->outer());
  LATHE_ASSERT(graph);
  return graph;
}

void Graph::refuse_in_body(std::string_view what, const Where& at, std::string_view hint) const {
  if (builder(at).outer())
    throw UserError(detail::line_of(builder(at), at), what,
                    fmt::format("the body of the loop @{} has no {}s of its own", ir(at).name, what), "loop_body",
                    hint);
}

Graph::Graph(std::string_view name) : state_(std::make_shared<detail::GraphState>(name)) {}

Graph::Graph(ir::Graph graph) : state_(std::make_shared<detail::GraphState>(std::move(graph))) {}

void Graph::throw_moved(const Where& at) {
  throw UserError(Location(at), "graph", "this Graph was moved to another", "graph_moved",
                  "use the Graph that it was moved to");
}

std::string Graph::path(std::string_view name, Where at) const { return join(scope_path(at), name); }

Tensor Graph::input(std::string_view name, DType dtype, const Shape& shape, Where at) const {
  refuse_in_body("input", at, "declare it before the loop; the body can use any tensor of the graph around it");
  const detail::Line line(builder(at), at);
  return Tensor(state_->argument(ir::ops::input, name, dtype, shape));
}

Tensor Graph::declared(const ir::Op& op, const std::string& name, DType dtype, const Shape& shape, const Init& init,
                       const Where& at) const {
  check_init(init, name, detail::line_of(builder(at), at));
  detail::GraphState& graph = *detail::around_loops(state_);
  const detail::Line line(graph, at);
  const Tensor t(graph.argument(op, name, dtype, shape));
  graph.initializers.push_back({name, init});
  return t;
}

Tensor Graph::parameter(std::string_view name, DType dtype, const Shape& shape, const Init& init, Where at) const {
  return declared(ir::ops::parameter, path(name, at), dtype, shape, init, at);
}

Tensor Graph::state(std::string_view name, DType dtype, const Shape& shape, const Init& init, Where at) const {
  return declared(ir::ops::state, path(name, at), dtype, shape, init, at);
}

Tensor Graph::random_state(Where at) const {
  if (builder(at).outer()) {
    std::optional<ir::Value>& rng = shared(at).iteration_rng;
    const detail::Line line(builder(), at);
    if (!rng) rng = builder().argument(ir::ops::input, builder().free_name("rng"), i64, {2});
    return Tensor(*rng);
  }
  if (const auto found = builder(at).find_argument("rng")) return Tensor(*found);
  const CallSite line(builder(), at);
  const Tensor made = declared(ir::ops::state, "rng", i64, {2}, Init::values({0, 0}), at);
  // Not update(), which a loop that draws refuses: the graph advances its state once in a run.
  state_->update(made.value(), (made + literal({2}, {0, 1}, i64, at)).value());
  return made;
}

Tensor Graph::dim_value(const Dim& dim, DType dtype, Where at) const {
  const detail::Line line(builder(at), at);
  return Tensor(ir::dim_value(*state_, dim, dtype));
}

Tensor Graph::random_uniform(const Shape& shape, DType dtype, const Uniform& of, Where at) const {
  if (!(of.low < of.high) || !std::isfinite(of.high - of.low))
    throw UserError(Location(at), "random_uniform", fmt::format("low is {} and high {}", of.low, of.high),
                    "random_range", "low must be below high, and both finite");
  const Tensor state = random_state(at);
  const detail::Line line(builder(at), at);
  return Tensor(ir::random_uniform(state.value(), shape, dtype, of.low, of.high));
}

Tensor Graph::random_normal(const Shape& shape, DType dtype, const Normal& of, Where at) const {
  if (!std::isfinite(of.mean) || !std::isfinite(of.deviation) || of.deviation < 0)
    throw UserError(Location(at), "random_normal", fmt::format("mean is {}, deviation {}", of.mean, of.deviation),
                    "random_range", "both must be finite, and the deviation not negative");
  const Tensor state = random_state(at);
  const detail::Line line(builder(at), at);
  return Tensor(ir::add(ir::mul(ir::random_normal(state.value(), shape, dtype), of.deviation), of.mean));
}

Tensor Graph::constant(const Number& value, DType dtype, Where at) const {
  const detail::Line line(builder(at), at);
  return Tensor(ir::constant(*state_, value, dtype));
}

Tensor Graph::full(const Shape& shape, const Number& value, DType dtype, Where at) const {
  const detail::Line line(builder(at), at);
  return Tensor(ir::full(*state_, shape, value, dtype));
}

Tensor Graph::literal(const Shape& shape, NumberList values, DType dtype, Where at) const {
  const detail::Line line(builder(at), at);
  return Tensor(ir::literal(*state_, shape, std::move(values), dtype));
}

Tensor Graph::arange(const Dim& size, DType dtype, Where at) const {
  const detail::Line line(builder(at), at);
  return Tensor(ir::iota(*state_, {size}, 0, dtype));
}

Tensor Graph::causal_mask(const Dim& rows, const Dim& columns, std::int64_t diagonal, Where at) const {
  const detail::Line line(builder(at), at);
  const ir::Value row = ir::iota(*state_, {rows, columns}, 0, i64),
                  column = ir::iota(*state_, {rows, columns}, 1, i64);
  const ir::Value limit = diagonal == 0 ? row : ir::add(row, diagonal);
  return Tensor(ir::le(column, limit));
}

Tensor Graph::eye(const Dim& size, DType dtype, Where at) const {
  const detail::Line line(builder(at), at);
  return Tensor(
      ir::cast(ir::eq(ir::iota(*state_, {size, size}, 0, i64), ir::iota(*state_, {size, size}, 1, i64)), dtype));
}

std::vector<Tensor> Graph::parameters(Where at) const {
  ir::GraphBuilder& builder = this->builder(at);
  std::vector<Tensor> found;
  for (const ir::ValueId id : builder.graph().arguments())
    if (builder.graph()[id].op == &ir::ops::parameter) found.emplace_back(ir::Value(builder, id));
  return found;
}

ir::Graph Graph::finish(Where at) const { return ir(at); }

void Graph::output(std::string_view name, const Tensor& value, Where at) const {
  refuse_in_body("output", at, "return the value from the body, as one of its outputs");
  detail::check_operands("output", at, {&value});
  const detail::Line line(builder(at), at);
  state_->output(name, value.value());
}

void Graph::update(const Tensor& state, const Tensor& value, Where at) const {
  constexpr std::string_view hint = "carry the value through the loop, and update the state after it";
  refuse_in_body("update", at, hint);
  if (shared(at).open_loops > 0)
    throw UserError(detail::line_of(builder(at), at), "update",
                    "the body of a loop updates a state of the graph around it, which would happen once in a run",
                    "loop_body", std::string(hint));
  detail::check_operands("update", at, {&state, &value});
  const detail::Line line(builder(at), at);
  state_->update(state.value(), value.value());
}

void Graph::set_initializer(std::string_view argument, const Init& init, Where at) const {
  check_init(init, argument, detail::line_of(builder(at), at));
  const ir::Graph& graph = ir(at);
  std::vector<std::string_view> names;
  for (Initializer& entry : shared(at).initializers) {
    if (entry.name == argument) {
      entry.init = init;
      return;
    }
    names.push_back(entry.name);
  }
  const std::string better = did_you_mean(argument, names);
  throw UserError(detail::line_of(builder(), at), "set_initializer",
                  fmt::format("@{} has no parameter or state named {}", graph.name, argument), "argument_unknown",
                  better.empty() ? "name one that was declared with parameter() or state()" : better);
}

Graph::Scope::Scope(const Graph& graph, std::string_view name, const Where& at)
    : graph_(graph.builder(at).shared_from_this()), at_(*graph_, [&] {
        const Location& now = graph_->location();
        const std::string path = join(now.scope(), name);
        return now.file().empty() ? Location("", static_cast<int>(at.line()), path)
                                  : Location(now.file(), now.line(), path);
      }()) {}

}  // namespace lathe
