#pragma once

#include <cstdint>
#include <string>

namespace lathe::ir {

/// An axis of a process mesh: its name and number of ranks.
struct MeshAxis {
  std::string name;
  std::int64_t ranks = 1;
  bool operator==(const MeshAxis&) const = default;
};

}  // namespace lathe::ir
