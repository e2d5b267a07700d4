#include "passes/lowering/pool/region_memo.h"

#include <algorithm>

namespace lathe {

std::optional<std::vector<Launch>> RegionMemo::find(const RegionKey& key,
                                                    const std::function<int(const ProgramBuffer&)>& workspace) const {
  const auto known = entries_.find(key.text);
  if (known == entries_.end()) return std::nullopt;
  std::vector<int> buffers = key.buffers;
  for (const ProgramBuffer& buffer : known->second.workspaces) buffers.push_back(workspace(buffer));
  std::vector<Launch> launches = known->second.launches;
  for (Launch& launch : launches) {
    for (int& b : launch.buffers) b = buffers[b];
    // Known sizes are constants in the code. A number among the arguments is a salt, or an offset that the key
    // contains.
    for (Dim& dim : launch.dims) {
      const auto& salts = known->second.salts;
      const auto at = dim.value() ? std::find(salts.begin(), salts.end(), *dim.value()) : salts.end();
      if (at != salts.end()) dim = Dim(key.salts[at - salts.begin()]);
    }
  }
  return launches;
}

void RegionMemo::keep(const RegionKey& key, std::span<const Launch> launches, std::span<const ProgramBuffer> buffers,
                      std::size_t first_workspace) {
  Entry entry{{launches.begin(), launches.end()},
              {buffers.begin() + static_cast<std::ptrdiff_t>(first_workspace), buffers.end()},
              key.salts};
  for (Launch& launch : entry.launches)
    for (int& b : launch.buffers) {
      const auto at = std::lower_bound(key.buffers.begin(), key.buffers.end(), b);
      const bool made = b >= static_cast<int>(first_workspace);
      if (!made && (at == key.buffers.end() || *at != b))
        return;  // belongs to no node of the region, so the key does not cover it
      b = static_cast<int>(made ? key.buffers.size() + static_cast<std::size_t>(b) - first_workspace
                                : static_cast<std::size_t>(at - key.buffers.begin()));
    }
  entries_.emplace(key.text, std::move(entry));
}

}  // namespace lathe
