#pragma once

#include <vector>

#include "passes/memory/memory_plan.h"

namespace lathe {

/// Launches [first, last] that may run at the same time.
struct LaunchGroup {
  int first = 0, last = 0;
};

/// Parts the launches of a program, in order, into groups as long as they go, of at most `most`: in a group none
/// writes memory that another one touches, by the buffers they name and by where the plan puts temporaries, and
/// where there are several none has checks, which are told of in the order of launches. Launches that make parts of
/// one value are a group however many they are. An exchange begins and is over between groups.
std::vector<LaunchGroup> group_launches(const Program& program, const MemoryPlan& plan, int most = 8);

}  // namespace lathe
