#include "models/import/ops/control_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"
#include "ir/ops/lookups.h"
#include "ir/support/error.h"
#include "ir/tensor/loop_views.h"
#include "models/import/ops/sizes/dim_functions.h"
#include "models/import/ops/sizes/loop_trips.h"
#include "models/import/ops/tensor_functions.h"

namespace lathe::importing {

namespace {

constexpr std::int64_t most_trips = std::int64_t{1} << 31;  ///< a larger limit means that there is none
constexpr std::int64_t most_counted = 1000;                 ///< iterations that are counted at import

/// Returns a condition that is known at import.
std::optional<bool> known(const OpCall& call, const Value& condition) {
  if (!condition.shape().numel().is(1))
    call.fail(fmt::format("the condition has the shape {}, not one element", condition.shape().to_string()),
              "import_operand");
  if (const HostTensor* const numbers = condition.constant()) return numbers->get_int(0) != 0;
  const std::optional<DimTensor> dims = condition.dims();
  const auto value = dims ? dims->elements[0].value() : std::nullopt;
  return value ? std::optional(*value != 0) : std::nullopt;
}

/// Returns a condition as a bool [].
Tensor scalar_condition(const OpCall& call, const Value& condition, const Graph& graph) {
  if (condition.dtype() != boolean)
    call.fail(fmt::format("the condition is {}, not bool", name(condition.dtype())), "import_operand");
  return condition.in(graph).reshape({});
}

/// Whether a value follows from constants and ranges alone.
bool is_fixed(const ir::Graph& graph, ir::ValueId id, std::set<std::int32_t>& seen) {
  if (!seen.insert(id.index).second) return true;
  const ir::Node& node = graph[id];
  if (node.op->as<ir::Argument>() || ir::is_loop(node)) return false;
  return std::ranges::all_of(node.operands, [&](ir::ValueId operand) { return is_fixed(graph, operand, seen); });
}

/// Returns the first node from `first` on that may fail at run time: one with an index that depends on values.
const ir::Node* first_that_fails(const ir::Graph& graph, int first) {
  for (int i = first; i < graph.size(); ++i) {
    const ir::Node& node = graph[ir::ValueId{i}];
    if (ir::is_loop(node))
      if (const ir::Node* const inner = first_that_fails(ir::loop_body(node).graph(), 0)) return inner;
    const std::optional<ir::Lookup> lookup = ir::lookup_of(graph, node);
    std::set<std::int32_t> seen;
    if (lookup && !is_fixed(graph, node.operands[lookup->indices], seen)) return &node;
  }
  return nullptr;
}

/// The state of a graph before a body that may run although the model does not run it.
class Speculation {
 public:
  explicit Speculation(const Graph& graph)
      : graph_(graph),
        nodes_(graph.ir().size()),
        checks_(graph.ir().checks.size()),
        updates_(graph.ir().updates.size()) {}

  /// Throws UserError [import_unsupported] if the body has an op that may fail at run time, or changes a state.
  void require_harmless(const OpCall& call, std::string_view body) const {
    const ir::Graph& graph = graph_.ir();
    constexpr std::string_view hint =
        "the condition is computed at run time, and Lathe has no branches: export the model with a constant "
        "condition";
    if (const ir::Node* const node = first_that_fails(graph, nodes_))
      call.fail(fmt::format("{} also runs if the condition is false, and {} at {} fails for an index out of range",
                            body, node->op->name.value, node->loc.place()),
                "import_unsupported", hint);
    if (graph.checks.size() > checks_)
      call.fail(
          fmt::format("{} also runs if the condition is false, and it has sizes that are checked when it runs: {}",
                      body, graph.checks.back().message),
          "import_unsupported", hint);
    if (graph.updates.size() > updates_)
      call.fail(fmt::format("{} also runs if the condition is false, and it changes a state", body),
                "import_unsupported", hint);
  }

 private:
  Graph graph_;
  int nodes_;
  std::size_t checks_, updates_;
};

std::string type_text(const Value& value) {
  return ir::TensorType::contiguous(value.dtype(), value.shape()).to_string();
}

bool is_same(const Value& a, const Value& b) {
  if (a.computed() && b.computed()) return a.computed()->value().id() == b.computed()->value().id();
  const std::optional<DimTensor> x = a.dims(), y = b.dims();
  return x && y && x->shape == y->shape && x->elements == y->elements;
}

/// The carries of a loop, as tensors and as values.
std::vector<Tensor> tensors_of(const std::vector<Value>& values, const Graph& graph) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(value.in(graph));
  return tensors;
}

/// Builds a loop in one of several ways.
class LoopImport {
 public:
  LoopImport(const OpCall& call, const SourceLoop& loop) : call_(call), loop_(loop) {}

  bool has_limit() const { return loop_.limit && loop_.limit->value().value_or(0) < most_trips; }

  /// Returns a loop whose condition stays true; nothing if it may not.
  std::optional<Results> endless(const Dim& trips, bool requires_true) const {
    bool stays_true = true;
    const auto run = [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
      const Results values = iteration(elements[0], {states.begin(), states.end()}, elements[0].graph());
      stays_true = !requires_true || known(call_, values[0]) == true;
      return step_of(values, elements[0].graph());
    };
    const LoopResults results = scan(carries(), {call_.graph().arange(trips, i64)}, run);
    return stays_true ? std::optional(results_of(results)) : std::nullopt;
  }

  /// Returns the number of iterations if a counter ends the loop; nothing for other conditions. The body is added to
  /// a loop that nothing reads, since it may read values around it.
  std::optional<Dim> until_counted(bool starts) const {
    std::optional<Countdown> countdown;
    const auto run = [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
      const Results values = iteration(elements[0], {states.begin(), states.end()}, elements[0].graph());
      countdown = countdown_of({.index = elements[0], .states = states, .first = loop_.states, .results = values});
      return LoopStep{.carries = {states.begin(), states.end()}};
    };
    scan(carries(), {call_.graph().arange(1, i64)}, run, {.name = "compared"});
    if (!countdown || (!starts && !begins(*countdown, loop_.condition.in(call_.graph())))) return std::nullopt;
    const std::optional<TripCount> count = trip_count(*countdown, starts ? 1 : 0);
    if (!count) return std::nullopt;
    if (!has_limit()) {
      if (count->least) require_trips(call_, *count);
      return count->trips;
    }
    // A limit that is not above `trips` is the number of iterations, also where that is less than `least`.
    const std::optional<Dim> trips = smaller(*loop_.limit, count->trips);
    return trips && (!count->least || *trips == *loop_.limit) ? trips : std::nullopt;
  }

  /// Runs iterations on the values that are known, in the body of a loop that nothing reads, since a body may read
  /// values around it. Returns their number; nothing if the condition depends on other values.
  std::optional<std::int64_t> counted() const {
    std::optional<std::int64_t> count;
    const auto run = [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
      const Graph graph = elements[0].graph();
      std::vector<Value> values;
      for (std::size_t i = 0; i < states.size(); ++i)
        values.push_back(loop_.states[i].constant() ? loop_.states[i] : Value(states[i]));
      const std::int64_t most = loop_.limit ? loop_.limit->value().value_or(0) : most_trips;
      for (std::int64_t i = 0; i < std::min(most, most_counted); ++i) {
        Results next = iteration(Value::constant(scalar_of(i, i64)), values, graph);
        const std::optional<bool> more = known(call_, next[0]);
        if (more == false || (more && i + 1 == most)) count = i + 1;
        if (more != true) break;
        values.assign(next.begin() + 1, next.begin() + 1 + static_cast<std::ptrdiff_t>(states.size()));
      }
      return LoopStep{.carries = {states.begin(), states.end()}};
    };
    scan(carries(), {call_.graph().arange(1, i64)}, run, {.name = "counted"});
    return count;
  }

  /// All iterations up to the limit run; the states do not change after the condition was false.
  Results masked() const {
    std::vector<Tensor> first = carries();
    const Graph around = call_.graph();
    first.push_back(loop_.condition.is_absent() ? around.constant(1, boolean)
                                                : scalar_condition(call_, loop_.condition, around));
    const auto run = [&](std::span<const Tensor> carried, std::span<const Tensor> elements) {
      const Graph graph = elements[0].graph();
      const Tensor active = carried.back();
      const std::vector<Tensor> states(carried.begin(), carried.end() - 1);
      const Speculation before(graph);
      const Results values = iteration(elements[0], {states.begin(), states.end()}, graph);
      before.require_harmless(call_, "the body");
      require_no_outputs(values.size());
      LoopStep next = step_of(values, graph);
      for (std::size_t i = 0; i < states.size(); ++i) {
        require_type(i, next.carries[i], states[i]);
        next.carries[i] = where(active, next.carries[i], states[i]);
      }
      next.carries.push_back(active & scalar_condition(call_, values[0], graph));
      next.outputs.clear();
      return next;
    };
    LoopResults results = scan(std::move(first), {around.arange(*loop_.limit, i64)}, run);
    results.carries.pop_back();
    return results_of(results);
  }

 private:
  std::vector<Tensor> carries() const { return tensors_of(loop_.states, call_.graph()); }

  Results iteration(const Value& index, std::vector<Value> states, const Graph& graph) const {
    Results values = loop_.body(index, std::move(states), graph);
    if (values.size() < 1 + loop_.states.size())
      call_.fail(fmt::format("the body has {} outputs for {} states", values.size(), loop_.states.size()),
                 "import_file");
    return values;
  }

  LoopStep step_of(const Results& values, const Graph& graph) const {
    LoopStep next;
    for (std::size_t i = 1; i < values.size(); ++i)
      (i <= loop_.states.size() ? next.carries : next.outputs).push_back(values[i].in(graph));
    return next;
  }

  void require_no_outputs(std::size_t values) const {
    for (std::size_t i = loop_.states.size(); i + 1 < values; ++i)
      if (call_.reads(i))
        call_.fail(
            fmt::format("the number of rows of result {} depends on a condition that is computed at run time", i),
            "import_unsupported", "shapes follow from the sizes of inputs: export the model without this result");
  }

  void require_type(std::size_t i, const Tensor& next, const Tensor& state) const {
    if (next.dtype() != state.dtype() || next.shape() != state.shape())
      call_.fail(fmt::format("state {} is {}, and its next value {}", i, state.value().type().to_string(),
                             next.value().type().to_string()),
                 "loop_carry", "all iterations have the same dtypes and shapes");
  }

  const OpCall& call_;
  const SourceLoop& loop_;
};

}  // namespace

Results results_of(const LoopResults& loop) {
  Results results(loop.carries.begin(), loop.carries.end());
  results.insert(results.end(), loop.outputs.begin(), loop.outputs.end());
  return results;
}

Results either(const OpCall& call, const Value& condition, std::string_view yes, std::string_view no,
               const std::vector<Value>& inputs) {
  if (const std::optional<bool> taken = known(call, condition))
    return call.run_body(*taken ? yes : no, inputs, call.graph());
  const Tensor which = scalar_condition(call, condition, call.graph());
  const Speculation before(call.graph());
  const Results a = call.run_body(yes, inputs, call.graph());
  before.require_harmless(call, yes);
  const Results b = call.run_body(no, inputs, call.graph());
  before.require_harmless(call, no);
  if (a.size() != b.size())
    call.fail(fmt::format("{} has {} outputs, and {} has {}", yes, a.size(), no, b.size()), "import_file");
  Results results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].dtype() != b[i].dtype() || a[i].shape() != b[i].shape())
      call.fail(fmt::format("the condition is computed at run time, and result {} is {} in {} and {} in {}", i,
                            type_text(a[i]), yes, type_text(b[i]), no),
                "import_unsupported",
                "both branches run, and their results have equal types: export the model with a constant condition");
    results.push_back(is_same(a[i], b[i]) ? a[i] : Value(where(which, a[i].in(call.graph()), b[i].in(call.graph()))));
  }
  return results;
}

Results source_loop(const OpCall& call, const SourceLoop& loop) {
  const LoopImport import(call, loop);
  const std::optional<bool> starts = loop.condition.is_absent() ? true : known(call, loop.condition);
  if (starts == false) return *import.endless(0, false);
  if (import.has_limit() && starts)
    if (std::optional<Results> results = import.endless(*loop.limit, true)) return *std::move(results);
  if (const std::optional<Dim> trips = import.until_counted(starts.has_value()))
    return *import.endless(*trips, false);
  if (starts)
    if (const std::optional<std::int64_t> trips = import.counted()) return *import.endless(*trips, false);
  if (import.has_limit()) return import.masked();
  call.fail(
      "the condition is computed at run time, and no number of iterations limits the loop", "import_unsupported",
      "Lathe's loops have a number of iterations that follows from constants and sizes: let the condition compare "
      "a counter with such a number, as i + 1 < n does; give the numbers that it depends on at import; or give "
      "the loop a limit, after which its condition is false");
}

}  // namespace lathe::importing
