#include "runtime/ranks/whole_tensors.h"

#include <algorithm>
#include <cstring>

#include "passes/shard/exchange_values.h"

namespace lathe {

HostTensor own_part(const Ranks& ranks, const HostTensor& whole, const shard::Placement& placement,
                    const std::string& name) {
  return shard::part_of(whole, placement, ranks.mesh(), ranks.rank(), name);
}

HostTensor whole_of(Ranks& ranks, const HostTensor& own, const shard::Placement& placement, const std::string& name) {
  const auto is_whole = [](const shard::AxisPlacement& axis) { return std::holds_alternative<shard::Whole>(axis); };
  if (std::ranges::all_of(placement, is_whole)) return own;
  const std::string bytes(reinterpret_cast<const char*>(own.data()), own.bytes());
  std::vector<HostTensor> parts;
  for (const std::string& part : ranks.gather(bytes)) {
    HostTensor& tensor = parts.emplace_back(own.dtype(), own.shape());
    std::memcpy(tensor.data(), part.data(), std::min(part.size(), tensor.bytes()));
  }
  return shard::join_parts(std::move(parts), placement, ranks.mesh(), name);
}

}  // namespace lathe
