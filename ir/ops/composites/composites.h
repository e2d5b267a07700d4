#pragma once

#include "ir/tensor/op/op.h"

/// The records of composite ops, by file in ir/ops/composites/composites.def. Few passes see one: expand() replaces
/// it by what it is made of.
namespace lathe::ir {

namespace ops {

#define LATHE_OP(name) extern const Op name;
#include "ir/ops/composites/composites.def"

}  // namespace ops

}  // namespace lathe::ir
