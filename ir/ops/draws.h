#pragma once

#include "ir/tensor/op/op.h"

namespace lathe::ir {

/// Returns whether an op draws random numbers: random_uniform, random_uniform_at. Their first operand is the state.
inline bool is_draw(const Op& op) {
  const auto* custom = op.as<Custom>();
  return custom && (custom->kind == CustomKind::random || custom->kind == CustomKind::random_at);
}

}  // namespace lathe::ir
