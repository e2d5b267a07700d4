#include "ir/kernel/intrinsics/region.h"

#include <algorithm>

#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

bool IntrinsicContext::is_in(const IntrinsicRegionRecord& record) const {
  return std::any_of(regions.begin(), regions.end(), [&](const RegionBody& r) { return r.record == &record; });
}

bool IntrinsicContext::is_in(const IntrinsicRegionRecord& record, std::size_t body) const {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const RegionBody& r) { return r.record == &record && r.body == body; });
}

const IntrinsicRegion* region_of(const Statement& statement, const IntrinsicRegionRecord& record) {
  const auto* region = std::get_if<IntrinsicRegion>(&statement.node);
  return region && region->record == &record ? region : nullptr;
}

bool leads_to(const Statement& statement, RunBy threads) {
  const auto* region = std::get_if<IntrinsicRegion>(&statement.node);
  bool found = region && std::any_of(region->record->bodies.begin(), region->record->bodies.end(),
                                     [&](const RegionBodyTraits& body) { return body.run_by == threads; });
  for_each_block(statement, [&](const Block& inside) {
    found =
        found || std::any_of(inside.begin(), inside.end(), [&](const Statement& s) { return leads_to(s, threads); });
  });
  return found;
}

void verify_parts(const Kernel& kernel, const IntrinsicRegion& region) {
  require(kernel, region.record != nullptr, "arity", "an intrinsic region without a record");
  const IntrinsicRegionRecord& record = *region.record;
  require(kernel, region.attributes.size() == record.attributes, "arity", "a {} of {} attributes", record.name,
          region.attributes.size());
  require(kernel, region.bodies.size() == record.bodies.size(), "arity", "a {} of {} bodies", record.name,
          region.bodies.size());
  require(kernel, (region.index == none) == record.index.empty(), "arity", "a {} of {} indices", record.name,
          region.index == none ? 0 : 1);
}

}  // namespace lathe::kernel
