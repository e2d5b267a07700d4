#include "ir/kernel/intrinsics/region.h"

#include <algorithm>

namespace lathe::kernel {

bool MachineContext::is_in(const MachineRegionRecord& record) const {
  return std::any_of(regions.begin(), regions.end(), [&](const RegionBody& r) { return r.record == &record; });
}

bool MachineContext::is_in(const MachineRegionRecord& record, std::size_t body) const {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const RegionBody& r) { return r.record == &record && r.body == body; });
}

const MachineRegion* region_of(const Statement& statement, const MachineRegionRecord& record) {
  const auto* region = std::get_if<MachineRegion>(&statement.node);
  return region && region->record == &record ? region : nullptr;
}

void verify_parts(const Kernel& kernel, const MachineRegion& region) {
  require(kernel, region.record != nullptr, "arity", "a machine region without a record");
  const MachineRegionRecord& record = *region.record;
  require(kernel, region.attributes.size() == record.attributes, "arity", "a {} of {} attributes", record.name,
          region.attributes.size());
  require(kernel, region.bodies.size() == record.bodies.size(), "arity", "a {} of {} bodies", record.name,
          region.bodies.size());
  require(kernel, (region.index == none) == record.index.empty(), "arity", "a {} of {} indices", record.name,
          region.index == none ? 0 : 1);
}

}  // namespace lathe::kernel
