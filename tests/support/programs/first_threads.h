#pragma once

#include <algorithm>

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::test {

/// An intrinsic region that only tests know: the first `count` threads of the innermost thread loop run its body, and
/// number themselves.
struct FirstThreads {
  std::int64_t count = 0;
  kernel::ValueId number = kernel::none;
  const kernel::Block& body;

  static FirstThreads of(const kernel::IntrinsicRegion& region) {
    return {region.attributes[0], region.index, region.bodies[0]};
  }
  void verify_place(const kernel::IntrinsicRegionRules& rules) const {
    rules.require(rules.context.thread_loops > 0 && rules.context.branches == 0, "first_threads_place",
                  "a first_threads outside the thread loops or in a branch");
  }
  void verify_bodies(const kernel::IntrinsicRegionRules& rules) const {
    rules.require(!body.empty(), "first_threads_body", "a first_threads of {} that does nothing", count);
  }
  std::string text(const kernel::IntrinsicText& text) const {
    return fmt::format("first_threads {} {}", count, text.value(number));
  }
  static kernel::IntrinsicRegion parse(kernel::IntrinsicReader& in);
  kernel::Range index_range(const kernel::Kernel&) const { return {0, count - 1}; }
  int first_threads() const { return static_cast<int>(count); }
  void interpret(kernel::IntrinsicRun& run, std::span<kernel::Thread* const> threads) const {
    const auto first = threads.first(std::min(threads.size(), static_cast<std::size_t>(count)));
    for (std::size_t i = 0; i < first.size(); ++i)
      run.lanes(number, *first[i])->integer = static_cast<std::int64_t>(i);
    run.run_together(body, first);
  }
};

inline constexpr kernel::RegionBodyTraits first_threads_bodies[] = {{"run", kernel::RunBy::first}};
inline constexpr kernel::IntrinsicRegionRecord first_threads_record = kernel::intrinsic_region_record<FirstThreads>(
    {.name = "first_threads", .bodies = first_threads_bodies, .attributes = 1, .index = "thread number"});

inline constexpr const kernel::IntrinsicRegionRecord* first_threads_regions[] = {&first_threads_record};
inline constexpr kernel::IntrinsicFamily first_threads_family{.regions = first_threads_regions};

inline kernel::IntrinsicRegion FirstThreads::parse(kernel::IntrinsicReader& in) {
  const int count = in.number();
  return {.record = &first_threads_record, .attributes = {count}, .index = in.index(), .bodies = {}};
}

}  // namespace lathe::test
