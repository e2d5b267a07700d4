#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/loops/loops.h"
#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/control_functions.h"

/// Ops with branches and bodies. A body becomes that of one loop of the graph, so a loop is differentiated like any
/// op.
namespace lathe::onnx {

namespace {

using importing::results_of;

/// Takes the branch of a condition that is known at import, and otherwise selects from the results of both.
Results if_op(const OpCall& call) {
  Results results = importing::either(call, call.operand(0), "then_branch", "else_branch", {});
  if (results.size() != call.node().results.size())
    call.fail(
        fmt::format("the branches have {} outputs, and the node {}", results.size(), call.node().results.size()),
        "import_file");
  return results;
}

/// Runs the body for each element of the sequences. Its outputs are the next states, then the values to stack.
LoopResults run_scan(const OpCall& call, const std::vector<Tensor>& carries, const std::vector<Tensor>& sequences,
                     bool reverse) {
  const ScanBody step = [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
    const Graph body = elements[0].graph();
    std::vector<Value> inputs(states.begin(), states.end());
    inputs.insert(inputs.end(), elements.begin(), elements.end());
    const Results values = call.run_body("body", std::move(inputs), body);
    if (values.size() < states.size())
      call.fail(fmt::format("the body has {} outputs for {} states", values.size(), states.size()), "import_file");
    LoopStep next;
    for (std::size_t i = 0; i < values.size(); ++i)
      (i < states.size() ? next.carries : next.outputs).push_back(values[i].in(body));
    return next;
  };
  return scan(carries, sequences, step, {.reverse = reverse});
}

/// Returns x with one dim at another place.
Tensor with_moved_dim(const Tensor& x, int from, int to) {
  if (from == to) return x;
  Ints order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return x.permute(order);
}

/// An attribute with one number for each sequence or output, 0 if it is not given.
Ints per_value(const OpCall& call, std::string_view attribute, std::size_t count) {
  Ints numbers = call.integers(attribute, Ints(count, 0));
  if (numbers.size() != count)
    call.fail(fmt::format("the attribute {} has {} numbers for {} values", attribute, numbers.size(), count),
              "import_attribute");
  return numbers;
}

/// The same for directions: 1 starts with the last element.
Ints directions_of(const OpCall& call, std::string_view attribute, std::size_t count) {
  Ints numbers = per_value(call, attribute, count);
  for (const std::int64_t number : numbers)
    if (number != 0 && number != 1)
      call.fail(fmt::format("the attribute {} has {}, not 0 or 1", attribute, number), "import_attribute");
  return numbers;
}

/// Returns the number of states, which are the operands from `first` before the sequences.
std::size_t states_of(const OpCall& call, std::size_t first) {
  const std::int64_t sequences = call.integer("num_scan_inputs");
  const auto given = static_cast<std::int64_t>(call.count()) - static_cast<std::int64_t>(first);
  if (sequences < 1 || sequences > given)
    call.fail(fmt::format("the attribute num_scan_inputs is {}, and there are {} operands", sequences, given),
              "import_attribute");
  return static_cast<std::size_t>(given - sequences);
}

Results scan_op(const OpCall& call) {
  const std::size_t states = states_of(call, 0), count = call.count() - states;
  const Ints axes = per_value(call, "scan_input_axes", count),
             directions = directions_of(call, "scan_input_directions", count);
  const bool reverse = std::ranges::all_of(directions, [](std::int64_t direction) { return direction == 1; });
  std::vector<Tensor> carries, sequences;
  for (std::size_t i = 0; i < states; ++i) carries.push_back(call.tensor(i));
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor given = call.tensor(states + i);
    const Tensor sequence = with_moved_dim(given, call.axis(axes[i], given.rank()), 0);
    sequences.push_back((directions[i] == 1) == reverse ? sequence : sequence.flip(0));
  }
  LoopResults loop = run_scan(call, carries, sequences, reverse);
  const Ints output_axes = per_value(call, "scan_output_axes", loop.outputs.size()),
             output_directions = directions_of(call, "scan_output_directions", loop.outputs.size());
  for (std::size_t i = 0; i < loop.outputs.size(); ++i) {
    Tensor& output = loop.outputs[i];
    // Outputs of a loop have the order of the elements they were computed from.
    if ((output_directions[i] == 1) != reverse) output = output.flip(0);
    output = with_moved_dim(output, 0, call.axis(output_axes[i], output.rank()));
  }
  return results_of(loop);
}

/// Version 8: the first dim of all operands is that of a batch, and the second one that of the iterations.
Results batched_scan(const OpCall& call) {
  if (call.has(0))
    call.fail("sequence_lens is not supported", "import_unsupported", "give sequences of equal lengths");
  const std::size_t states = states_of(call, 1), count = call.count() - 1 - states;
  const Ints directions = directions_of(call, "directions", count);
  const bool reverse = std::ranges::all_of(directions, [](std::int64_t direction) { return direction == 1; });
  std::vector<Tensor> operands;
  for (std::size_t i = 1; i < call.count(); ++i) operands.push_back(call.tensor(i));
  for (std::size_t i = 0; i < count; ++i)
    if ((directions[i] == 1) != reverse) operands[states + i] = operands[states + i].flip(1);
  const auto run = [&](std::span<const Tensor>, std::span<const Tensor> elements) {
    const auto middle = elements.begin() + static_cast<std::ptrdiff_t>(states);
    LoopResults loop = run_scan(call, {elements.begin(), middle}, {middle, elements.end()}, reverse);
    LoopStep step{.carries = {}, .outputs = std::move(loop.carries)};
    for (const Tensor& output : loop.outputs) step.outputs.push_back(reverse ? output.flip(0) : output);
    return step;
  };
  return results_of(scan({}, operands, run, {.name = "batch"}));
}

/// The body also gets the number of the iteration and the condition.
Results loop_op(const OpCall& call) {
  importing::SourceLoop loop;
  if (call.has(0)) {
    const std::vector<Dim> given = call.dims(0, "the number of iterations");
    if (given.size() != 1) call.fail("the number of iterations has more than one element", "import_operand");
    loop.limit = given[0].value() && *given[0].value() < 0 ? Dim(0) : given[0];
  }
  if (call.has(1)) loop.condition = call.operand(1);
  for (std::size_t i = 2; i < call.count(); ++i) loop.states.push_back(call.operand(i));
  loop.body = [&](const Value& index, std::vector<Value> states, const Graph& graph) {
    std::vector<Value> inputs{index, Value::constant(scalar_of(1, boolean))};
    inputs.insert(inputs.end(), states.begin(), states.end());
    return call.run_body("body", std::move(inputs), graph);
  };
  return importing::source_loop(call, loop);
}

}  // namespace

std::span<const OpRecord> loop_ops() {
  static constexpr OpRecord records[] = {
      {"If", 1, latest, "then_branch else_branch", if_op},
      {"Loop", 1, latest, "body", loop_op},
      {"Scan", 8, 8, "body directions num_scan_inputs", batched_scan},
      {"Scan", 9, latest,
       "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions", scan_op},
  };
  return records;
}

}  // namespace lathe::onnx
