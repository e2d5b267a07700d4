#pragma once

#include <string_view>

#include "passes/fusion/fusion.h"

namespace lathe {

/// The position of a member in its region.
struct MemberPlace {
  RegionKind kind;         ///< of the region
  bool in_output = false;  ///< of an attention: whether it is a member of an output
  bool is_first = false;   ///< of the region, the scores or the output
};

/// Returns the role of a member as text: "scores", "output product", "product", "reduction", "epilogue",
/// "elementwise", or the kind of a region that it has for itself, such as "scatter".
std::string_view role_of(const ir::Node& node, const MemberPlace& place);

}  // namespace lathe
