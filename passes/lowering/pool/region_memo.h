#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "passes/lowering/pool/region_key.h"

namespace lathe {

/// The launches of regions lowered so far, to run again for regions with the same key over their own buffers and
/// draws.
class RegionMemo {
 public:
  /// The launches for a region, where one with this key was kept. `workspace` adds a buffer to the program.
  std::optional<std::vector<Launch>> find(const RegionKey& key,
                                          const std::function<int(const ProgramBuffer&)>& workspace) const;

  /// Keeps a region's launches. The program's buffers from `first_workspace` on were made for them.
  void keep(const RegionKey& key, std::span<const Launch> launches, std::span<const ProgramBuffer> buffers,
            std::size_t first_workspace);

 private:
  struct Entry {
    std::vector<Launch> launches;  // their buffers: positions in RegionKey::buffers, then workspaces
    std::vector<ProgramBuffer> workspaces;
    std::vector<std::int64_t> salts;
  };
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace lathe
