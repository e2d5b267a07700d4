#pragma once

#include <optional>

#include "ir/tensor/op/op.h"
#include "passes/fusion/region_kind.h"

namespace lathe {

/// The kind of region that a node has to itself, because its kernel goes over its operands in a way of its own: it
/// reads them whole, and joins no other region. Nothing for nodes that share regions.
std::optional<RegionKind> own_region(const ir::Node& node);

}  // namespace lathe
