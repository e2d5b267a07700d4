#include "ir/tensor/constants.h"

#include <cmath>

#include "ir/support/error.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir {

namespace {

bool is_constant(const Node& node) {
  const auto* custom = node.op->as<Custom>();
  return custom && custom->kind == CustomKind::constant;
}

bool shows_its_operand(const Op& op) {
  return op.as<View>() || op.name.value == "reshape" || op.name.value == "contiguous";
}

}  // namespace

NumberList constant_values(const Node& constant) {
  LATHE_ASSERT(is_constant(constant));
  return constant.attrs.get<NumberList>("values").rounded_to(constant.type.dtype);
}

std::optional<Number> written_number(const Graph& graph, ValueId id) {
  while (graph[id].operands.size() == 1 && shows_its_operand(*graph[id].op)) id = graph[id].operands[0];
  const Node& node = graph[id];
  if (!is_constant(node) || is_complex(node.type.dtype)) return std::nullopt;
  const auto& values = node.attrs.get<NumberList>("values");
  if (values.empty()) return std::nullopt;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (!(values[i] == values[0]) || std::signbit(values[i].real()) != std::signbit(values[0].real()))
      return std::nullopt;
  return values[0];
}

std::optional<Number> uniform_value(const Graph& graph, ValueId id) {
  const auto written = written_number(graph, id);
  return written ? std::optional(written->rounded_to(graph[id].type.dtype)) : std::nullopt;
}

}  // namespace lathe::ir
