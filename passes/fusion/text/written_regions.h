#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/text/parser_detail.h"
#include "passes/fusion/regions/region_kind.h"

/// Regions as written, before their values are looked up in the graph that follows them.
namespace lathe {

struct WrittenMember {
  ir::detail::Token first;  ///< of the role
  std::string role;
  bool stored = false;
  ir::detail::Token value, op;
  ir::detail::WrittenType type;
  std::optional<std::vector<int>> dims = {}, space = {};
  std::optional<ir::detail::Token> in = {};
};

struct WrittenRegion {
  ir::detail::Token first;
  RegionKind kind = RegionKind::rows;
  Shape domain;
  int inner = 0, row = -1;
  std::vector<int> sequential = {}, accumulated = {};
  std::vector<WrittenMember> members = {};
};

/// A value and the name of its op.
struct WrittenNode {
  ir::detail::Token value, op;
};

struct WrittenRegions {
  std::vector<WrittenRegion> regions;
  std::vector<WrittenNode> inlined, constants;
};

/// Parses the text of print_regions.
WrittenRegions parse_written_regions(ir::detail::GraphTokens& in);

}  // namespace lathe
