#pragma once

#include <optional>

#include "ir/tensor/op/op.h"
#include "passes/fusion/regions/region_kind.h"

namespace lathe {

/// Returns the kind of region that a node has for itself, because its kernel accesses its operands in a special way:
/// it reads them whole and joins no other region. Returns nothing for nodes that share regions.
std::optional<RegionKind> own_region(const ir::Node& node);

}  // namespace lathe
