#pragma once

#include <span>
#include <vector>

#include "ir/tensor/builder.h"
#include "ir/tensor/loop_views.h"

/// Functions of the op `loop`, which ir/tensor/loop_views.h describes.
namespace lathe::ir {

/// The parts of a loop, apart from its results.
struct LoopParts {
  Body body;
  Dim trips = 0;
  std::vector<Value> carries = {};    ///< their values before the first iteration
  std::vector<Value> sequences = {};  ///< [trips, ...]
  std::vector<Value> invariants = {};
  bool reverse = false;
};

/// Adds a loop and returns all its results, in order. At least one operand or `builder` determines the graph. Throws
/// UserError [loop_body], [loop_operand] for a body whose arguments, updates or outputs do not fit.
std::vector<Value> loop(GraphBuilder& builder, const LoopParts& parts);

/// Returns the parts of a loop with other operands, which may be of another graph.
LoopParts loop_parts(const Node& node, std::span<const Value> operands);
}  // namespace lathe::ir
