#include "runtime/cpu/launch_groups.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "passes/program/kept_launches.h"
#include "passes/program/program_loops.h"

namespace lathe {

LaunchGrouping::LaunchGrouping(const Program& program, int most)
    : program_(program), most_(most), first_use_{0}, starts_group_(program.launches.size()) {
  for (const Launch& launch : program.launches) {
    const kernel::Kernel& kernel = program.kernels[launch.kernel];
    for (std::size_t i = 0; i < launch.buffers.size(); ++i)
      uses_.push_back({launch.buffers[i], storage_of(program, launch.buffers[i]),
                       kernel.buffers[i].access != kernel::Access::read});
    first_use_.push_back(uses_.size());
  }
  if (const int kept = kept_launches(program); static_cast<std::size_t>(kept) < starts_group_.size())
    starts_group_[kept] = true;
  for (const Collective& collective : program.collectives)
    for (const int end : {collective.start, collective.done})
      if (static_cast<std::size_t>(end) < starts_group_.size()) starts_group_[end] = true;
  for (const ProgramLoop& loop : program.loops)
    for (const int end : {loop.first, loop.end})
      if (static_cast<std::size_t>(end) < starts_group_.size()) starts_group_[end] = true;
}

std::vector<LaunchGroup> LaunchGrouping::groups(const MemoryPlan& plan, const std::vector<bool>& skips) const {
  std::vector<Range> ranges(program_.buffers.size());
  for (const MemoryPlan::Block& block : plan.blocks)
    ranges[block.buffer] = {block.offset, block.offset + block.bytes};
  std::vector<LaunchGroup> groups;
  Members members;  // of the last group
  for (std::size_t l = 0; l < program_.launches.size(); ++l) {
    const bool runs = skips.empty() || !skips[l];
    const bool joins = !groups.empty() && !starts_group_[l] &&
                       (!runs || members.empty() || (may_join(members, l) && !meets(members, l, ranges)));
    if (!joins) {
      groups.push_back({static_cast<int>(l), static_cast<int>(l)});
      members.clear();
    }
    groups.back().last = static_cast<int>(l);
    if (runs) members.push_back(l);
  }
  return groups;
}

bool LaunchGrouping::are_parts(std::size_t a, std::size_t b) const {
  const int value = program_.launches[b].part_of;
  return value >= 0 && program_.launches[a].part_of == value;
}

/// Returns whether a launch may join the previous group, apart from memory conflicts.
bool LaunchGrouping::may_join(const Members& group, std::size_t launch) const {
  if (are_parts(group.back(), launch)) return true;
  const auto is_plain = [&](std::size_t l) {
    return program_.launches[l].part_of < 0 && program_.launches[l].checks.empty();
  };
  return static_cast<int>(group.size()) < most_ && is_plain(group.back()) && is_plain(launch);
}

/// Returns whether a launch conflicts with the group: one of them writes memory that the other uses. Parts of one
/// value may share the value's buffer and scratch, which is per thread.
bool LaunchGrouping::meets(const Members& group, std::size_t launch, const std::vector<Range>& ranges) const {
  const bool parts = are_parts(group.back(), launch);
  const auto uses = [&](std::size_t l) {
    return std::span(uses_).subspan(first_use_[l], first_use_[l + 1] - first_use_[l]);
  };
  const auto meet = [&](const Use& x, const Use& y) {
    if (!x.writes && !y.writes) return false;
    if (x.buffer == y.buffer) return !parts;
    if (x.storage == y.storage) return true;
    const Range &here = ranges[x.storage], &there = ranges[y.storage];
    return here.begin < there.end && there.begin < here.end;
  };
  return std::ranges::any_of(group, [&](std::size_t member) {
    return std::ranges::any_of(uses(launch), [&](const Use& x) {
      return std::ranges::any_of(uses(member), [&](const Use& y) { return meet(x, y); });
    });
  });
}

}  // namespace lathe
