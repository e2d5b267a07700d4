#pragma once

#include "ir/tensor/op.h"

namespace lathe::ir {

/// Whether an op draws random numbers: random_uniform, random_uniform_at. Its first operand is the state.
bool is_draw(const Op& op);

}  // namespace lathe::ir
