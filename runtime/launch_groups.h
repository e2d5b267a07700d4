#pragma once

#include <cstdint>
#include <vector>

#include "passes/memory/memory_plan.h"

namespace lathe {

/// Launches [first, last] that may run at the same time.
struct LaunchGroup {
  int first = 0, last = 0;
};

/// Parts the launches of a program, in order, into groups as long as they go: in a group none writes memory that
/// another one touches, by the buffers they name and by where the plan puts temporaries, and where there are several
/// none has checks, which are told of in the order of launches. Launches that make parts of one value are a group
/// however many they are. An exchange begins and is over between groups.
class LaunchGrouping {
 public:
  /// `program` must outlive it. `most`: launches of a group, but for parts.
  explicit LaunchGrouping(const Program& program, int most = 8);

  /// The groups under a plan of the program.
  std::vector<LaunchGroup> groups(const MemoryPlan& plan) const;

 private:
  /// How a launch uses a buffer.
  struct Use {
    int buffer;
    bool writes;
  };
  /// A range of the arena; empty outside of it.
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  bool are_parts(std::size_t a, std::size_t b) const;
  bool may_join(const LaunchGroup& group, std::size_t launch) const;
  bool meets(const LaunchGroup& group, std::size_t launch, const std::vector<Range>& ranges) const;

  const Program& program_;
  int most_;
  std::vector<Use> uses_;               ///< of all launches, in order
  std::vector<std::size_t> first_use_;  ///< by launch, and their end
  std::vector<bool> meets_exchange_;    ///< by launch: one begins, or must be over, just before
};

}  // namespace lathe
