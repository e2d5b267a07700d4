#include <cstring>

#include "ir/tensor/interpret/evaluate.h"
#include "ir/tensor/loop_views.h"

namespace lathe::ir {

namespace {

/// Returns the elements at `index` of dim 0.
HostTensor element_of(const HostTensor& sequence, std::int64_t index) {
  HostTensor part(sequence.dtype(), Sizes(sequence.shape().begin() + 1, sequence.shape().end()));
  if (part.bytes() > 0)
    std::memcpy(part.data(), sequence.data() + static_cast<std::size_t>(index) * part.bytes(), part.bytes());
  return part;
}

void set_element(HostTensor& stack, std::int64_t index, const HostTensor& part) {
  if (part.bytes() > 0)
    std::memcpy(stack.data() + static_cast<std::size_t>(index) * part.bytes(), part.data(), part.bytes());
}

}  // namespace

HostTensor evaluate_loop(const Node& node, OperandTensors operands, const DimBindings& bindings,
                         const InterpretOptions& options) {
  const Graph& body = loop_body(node).graph();
  const int carries = carry_count(node), sequences = sequence_count(node), result = loop_result(node);
  const std::int64_t trips = loop_trips(node).evaluate(bindings);
  std::vector<ValueId> wanted;
  for (int i = 0; i < carries; ++i) wanted.push_back(next_of(body, i));
  if (result >= carries) wanted.push_back(body.outputs[static_cast<std::size_t>(result - carries)].value);

  std::vector<HostTensor> carried;
  for (int i = 0; i < carries; ++i) carried.push_back(*operands[static_cast<std::size_t>(i)]);
  HostTensor stack;
  if (result >= carries) stack = HostTensor(evaluation_dtype(node.type.dtype), node.type.shape.evaluate(bindings));
  for (std::int64_t t = 0; t < trips; ++t) {
    const std::int64_t index = loop_reverse(node) ? trips - 1 - t : t;
    std::vector<HostTensor> parts;
    for (int s = 0; s < sequences; ++s)
      parts.push_back(element_of(*operands[static_cast<std::size_t>(carries + s)], index));
    std::vector<const HostTensor*> arguments;
    for (const HostTensor& each : carried) arguments.push_back(&each);
    for (const HostTensor& each : parts) arguments.push_back(&each);
    for (std::size_t i = arguments.size(); i < operands.size(); ++i) arguments.push_back(operands[i]);
    std::vector<HostTensor> values = evaluate_graph(body, arguments, wanted, bindings, options);
    if (result >= carries) {
      set_element(stack, index, values.back());
      values.pop_back();
    }
    carried = std::move(values);
  }
  return result >= carries ? std::move(stack) : std::move(carried[static_cast<std::size_t>(result)]);
}

}  // namespace lathe::ir
