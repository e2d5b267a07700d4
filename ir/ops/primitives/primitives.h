#pragma once

#include "ir/tensor/op/op.h"

/// The records of primitive ops, by family in ir/ops/primitives/primitives.def. A pass names an op by its record:
/// `node.op == &ops::gather`. Composites: ir/ops/composites/composites.h.
namespace lathe::ir::ops {

#define LATHE_OP(name) extern const Op name;
#include "ir/ops/primitives/primitives.def"

}  // namespace lathe::ir::ops
