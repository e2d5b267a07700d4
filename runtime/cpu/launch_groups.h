#pragma once

#include <cstdint>
#include <vector>

#include "passes/memory/memory_plan.h"

namespace lathe {

/// Launches [first, last] that may run concurrently.
struct LaunchGroup {
  int first = 0, last = 0;
};

/// Partitions the launches of a program, in order, into groups that are as long as possible. In a group, no launch
/// writes memory that another one uses, according to their buffers and to the arena offsets in the plan. Groups of
/// several launches have no checks, because failed checks are reported in the order of launches. Launches that
/// compute parts of one value form a group of any length. The launches that write kept buffers have groups of
/// their own. Collectives start and complete between groups, and loops begin and end between them. Two slices of one
/// buffer count as the same memory.
class LaunchGrouping {
 public:
  /// `program` must outlive it. `most` is the maximum number of launches in a group, except for parts of one value.
  explicit LaunchGrouping(const Program& program, int most = 8);

  /// Returns the groups for a memory plan of the program. `skips`, by launch: it does not run, so it may be in any
  /// group; empty: all run.
  std::vector<LaunchGroup> groups(const MemoryPlan& plan, const std::vector<bool>& skips = {}) const;

 private:
  /// A use of a buffer by a launch.
  struct Use {
    int buffer, storage;  ///< storage: what a slice is part of
    bool writes;
  };
  /// A range of the arena; empty for buffers outside of it.
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  /// The launches of a group that run.
  using Members = std::vector<std::size_t>;
  bool are_parts(std::size_t a, std::size_t b) const;
  bool may_join(const Members& group, std::size_t launch) const;
  bool meets(const Members& group, std::size_t launch, const std::vector<Range>& ranges) const;

  const Program& program_;
  int most_;
  std::vector<Use> uses_;               ///< of all launches, in order
  std::vector<std::size_t> first_use_;  ///< by launch, and the end
  /// By launch: a collective starts or must be complete just before it, or a loop begins or ends there.
  std::vector<bool> starts_group_;
};

}  // namespace lathe
