#pragma once

#include "ir/tensor/op/op.h"

/// The records of primitive ops, grouped by family in ir/ops/primitives/primitives.def. A pass compares records to
/// identify an op: `node.op == &ops::gather`. For composites, see ir/ops/composites/composites.h.
namespace lathe::ir::ops {

#define LATHE_OP(name) extern const Op name;
#include "ir/ops/primitives/primitives.def"

}  // namespace lathe::ir::ops
