#pragma once

#include <string_view>

#include "ir/tensor/op/op.h"

namespace lathe::tools {

/// Returns the class of an op in drawings: argument, view, elementwise, product, reduce, composite or special.
std::string_view node_kind(const ir::Op& op);

}  // namespace lathe::tools
