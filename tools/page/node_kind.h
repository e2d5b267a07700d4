#pragma once

#include <string_view>

#include "ir/tensor/op/op.h"

namespace lathe::tools {

/// The class of an op in pictures: argument, view, elementwise, product, reduce, composite or special.
std::string_view node_kind(const ir::Op& op);

}  // namespace lathe::tools
