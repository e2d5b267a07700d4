#include "runtime/cpu/launch_groups.h"

#include <cstddef>

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
  for (const Collective& collective : program.collectives)
    for (const int end : {collective.start, collective.done})
      if (static_cast<std::size_t>(end) < starts_group_.size()) starts_group_[end] = true;
  for (const ProgramLoop& loop : program.loops)
    for (const int end : {loop.first, loop.end})
      if (static_cast<std::size_t>(end) < starts_group_.size()) starts_group_[end] = true;
}

std::vector<LaunchGroup> LaunchGrouping::groups(const MemoryPlan& plan) const {
  std::vector<Range> ranges(program_.buffers.size());
  for (const MemoryPlan::Block& block : plan.blocks)
    ranges[block.buffer] = {block.offset, block.offset + block.bytes};
  std::vector<LaunchGroup> groups;
  for (std::size_t l = 0; l < program_.launches.size(); ++l) {
    if (l > 0 && may_join(groups.back(), l) && !meets(groups.back(), l, ranges))
      groups.back().last = static_cast<int>(l);
    else
      groups.push_back({static_cast<int>(l), static_cast<int>(l)});
  }
  return groups;
}

bool LaunchGrouping::are_parts(std::size_t a, std::size_t b) const {
  const int value = program_.launches[b].part_of;
  return value >= 0 && program_.launches[a].part_of == value;
}

/// Returns whether a launch may join the previous group, apart from memory conflicts.
bool LaunchGrouping::may_join(const LaunchGroup& group, std::size_t launch) const {
  if (starts_group_[launch]) return false;
  if (are_parts(launch - 1, launch)) return true;
  const auto is_plain = [&](std::size_t l) {
    return program_.launches[l].part_of < 0 && program_.launches[l].checks.empty();
  };
  return group.last - group.first + 1 < most_ && is_plain(launch - 1) && is_plain(launch);
}

/// Returns whether a launch conflicts with the group: one of them writes memory that the other uses. Parts of one
/// value may share the value's buffer and scratch, which is per thread.
bool LaunchGrouping::meets(const LaunchGroup& group, std::size_t launch, const std::vector<Range>& ranges) const {
  const bool parts = are_parts(launch - 1, launch);
  const std::size_t own = first_use_[launch];
  for (std::size_t a = own; a < first_use_[launch + 1]; ++a)
    for (std::size_t b = first_use_[group.first]; b < own; ++b) {
      const Use &x = uses_[a], &y = uses_[b];
      if (!x.writes && !y.writes) continue;
      if (x.buffer == y.buffer) {
        if (!parts) return true;
        continue;
      }
      if (x.storage == y.storage) return true;
      const Range &here = ranges[x.storage], &there = ranges[y.storage];
      if (here.begin < there.end && there.begin < here.end) return true;
    }
  return false;
}

}  // namespace lathe
