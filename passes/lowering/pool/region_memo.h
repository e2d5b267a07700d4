#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "passes/lowering/pool/region_key.h"

namespace lathe {

/// Launches of regions that were already lowered. They are reused for regions with the same key, over their own
/// buffers and random streams.
class RegionMemo {
 public:
  /// Returns the launches for a region if one with this key is known. `workspace` adds a buffer to the program.
  std::optional<std::vector<Launch>> find(const RegionKey& key,
                                          const std::function<int(const ProgramBuffer&)>& workspace) const;

  /// Stores a region's launches. Program buffers from index `first_workspace` on are its workspaces.
  void keep(const RegionKey& key, std::span<const Launch> launches, std::span<const ProgramBuffer> buffers,
            std::size_t first_workspace);

 private:
  struct Entry {
    std::vector<Launch> launches;  // buffers are positions in RegionKey::buffers, then workspaces
    std::vector<ProgramBuffer> workspaces;
    std::vector<std::int64_t> salts;
  };
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace lathe
