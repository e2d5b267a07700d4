#include "models/import/ops/control_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Control flow of torch: functions are subgraphs, and the values they read are operands.
namespace lathe::pt2 {

namespace {

using importing::results_of;

std::vector<Value> joined(std::vector<Value> first, const std::vector<Value>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<Tensor> tensors_in(const std::vector<Value>& values, const Graph& graph) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(value.in(graph));
  return tensors;
}

Results cond(const OpCall& call) {
  return importing::either(call, call.operand(0), "true_fn", "false_fn", call.group(1));
}

/// Calls a function for each element of the sequences along dim 0. Its results are the next states, then outputs.
Results scanned(const OpCall& call, std::string_view function, const std::vector<Value>& states,
                const std::vector<Value>& sequences, const std::vector<Value>& more) {
  if (sequences.empty()) call.fail("there is no sequence", "import_operand");
  const ScanBody step = [&](std::span<const Tensor> carries, std::span<const Tensor> elements) {
    const Graph body = elements[0].graph();
    std::vector<Value> inputs(carries.begin(), carries.end());
    inputs.insert(inputs.end(), elements.begin(), elements.end());
    const Results values = call.run_body(function, joined(std::move(inputs), more), body);
    if (values.size() < carries.size()) call.fail("the function returns fewer values than states", "import_file");
    LoopStep next;
    for (std::size_t i = 0; i < values.size(); ++i)
      (i < carries.size() ? next.carries : next.outputs).push_back(values[i].in(body));
    return next;
  };
  return results_of(scan(tensors_in(states, call.graph()), tensors_in(sequences, call.graph()), step));
}

Results scan_op(const OpCall& call) {
  return scanned(call, "combine_fn", call.group(0), call.group(1), call.group(2));
}

Results map_op(const OpCall& call) { return scanned(call, "f", {}, call.group(0), call.group(1)); }

/// The condition is a function of the states, which is evaluated before each iteration.
Results while_op(const OpCall& call) {
  const std::vector<Value> more = call.group(1);
  const auto condition = [&](const std::vector<Value>& states, const Graph& graph) {
    Results results = call.run_body("cond_fn", joined(states, more), graph);
    if (results.size() != 1) call.fail("cond_fn does not return one value", "import_file");
    return results[0];
  };
  importing::SourceLoop loop;
  loop.states = call.group(0);
  loop.condition = condition(loop.states, call.graph());
  loop.body = [&](const Value&, const std::vector<Value>& states, const Graph& graph) {
    Results next = call.run_body("body_fn", joined(states, more), graph);
    next.insert(next.begin(), condition(next, graph));
    return next;
  };
  return importing::source_loop(call, loop);
}

}  // namespace

std::span<const OpRecord> control_flow_ops() {
  static constexpr OpRecord records[] = {
      aten("cond", "pred operands", "true_fn false_fn", cond),
      aten("map_impl", "xs pos_args", "f", map_op),
      aten("scan", "init xs additional_inputs", "combine_fn", scan_op),
      aten("while_loop", "carried_inputs additional_inputs", "cond_fn body_fn", while_op),
  };
  return records;
}

}  // namespace lathe::pt2
