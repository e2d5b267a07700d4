#include "passes/remat/segment_body.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/dce.h"

namespace lathe {

using namespace ir;

int SegmentBody::add(std::vector<Operand>& operands, ValueId operand, const Node& like, const TensorType& type,
                     bool share) {
  const auto known = share ? std::ranges::find(operands, operand, &Operand::outside) : operands.end();
  if (known != operands.end()) return static_cast<int>(known - operands.begin());
  operands.push_back({.outside = operand, .name = like.name, .loc = like.loc, .type = type});
  return static_cast<int>(operands.size()) - 1;
}

int SegmentBody::carry(ValueId operand, const Node& like, const TensorType& type) {
  return add(carries_, operand, like, type, false);
}

int SegmentBody::sequence(ValueId operand, const Node& like, const TensorType& type) {
  return add(sequences_, operand, like, type, true);
}

int SegmentBody::invariant(ValueId operand, const Node& like, const TensorType& type) {
  return add(invariants_, operand, like, type, true);
}

void SegmentBody::open() {
  const auto declare = [&](std::vector<Operand>& operands, const Op& op) {
    for (Operand& each : operands) {
      const GraphBuilder::At line(builder_, each.loc);
      each.inside = builder_.argument(op, builder_.free_name(each.name), each.type.dtype, each.type.shape);
    }
  };
  declare(carries_, ops::state);
  declare(sequences_, ops::input);
  declare(invariants_, ops::input);
}

int SegmentBody::output(const std::string& name, const Value& value) {
  const auto& outputs = builder_.graph().outputs;
  std::string free = name;
  for (int number = 2; std::ranges::find(outputs, free, &Output::name) != outputs.end(); ++number)
    free = fmt::format("{}.{}", name, number);
  builder_.output(free, value);
  return static_cast<int>(outputs.size()) - 1;
}

Body SegmentBody::close() { return Body(dce(builder_.finish())); }

std::vector<ValueId> SegmentBody::operands() const {
  std::vector<ValueId> all;
  for (const auto* some : {&carries_, &sequences_, &invariants_})
    for (const Operand& each : *some) all.push_back(each.outside);
  return all;
}

}  // namespace lathe
