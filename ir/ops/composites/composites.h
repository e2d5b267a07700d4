#pragma once

#include "ir/tensor/op/op.h"

/// The records of composite ops, grouped by file in ir/ops/composites/composites.def. Most passes never see one:
/// expand() replaces it by its expansion.
namespace lathe::ir {

namespace ops {

#define LATHE_OP(name) extern const Op name;
#include "ir/ops/composites/composites.def"

}  // namespace ops

}  // namespace lathe::ir
