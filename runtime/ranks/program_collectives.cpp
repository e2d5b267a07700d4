#include "runtime/ranks/program_collectives.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "runtime/ranks/rank_stalled.h"

namespace lathe {

ProgramCollectives::ProgramCollectives(const Program& program, DimTable& table, Ranks* ranks)
    : program_(program), ranks_(ranks), by_end_(program.collectives.size()) {
  for (const Collective& collective : program.collectives) {
    std::vector<std::size_t>& elements = elements_.emplace_back();
    for (const Collective::Part& part : collective.parts) elements.push_back(table.add(part.elements));
    if (!ranks) continue;
    const int axis = ranks->mesh().find(collective.axis);
    if (ranks->mesh()[axis].ranks != collective.ranks)
      throw UserError(collective.parts.front().loc, collective.parts.front().op.op_name(),
                      fmt::format("it is one of {} processes along {}, and the mesh is {}", collective.ranks,
                                  collective.axis, ranks->mesh().to_string()),
                      "mesh_processes", "divide the graph over the mesh of the processes that run it");
  }
  std::iota(by_end_.begin(), by_end_.end(), std::size_t{0});
  std::ranges::stable_sort(by_end_, {}, [&](std::size_t e) { return program.collectives[e].done; });
}

void ProgramCollectives::restart(std::span<const std::int64_t> sizes, std::span<void* const> buffers) {
  sizes_ = sizes;
  buffers_ = buffers;
  started_ = ended_ = 0;
}

void ProgramCollectives::before_launch(int launch) {
  if (!ranks_) return;
  const std::vector<Collective>& all = program_.collectives;
  while (started_ < all.size() && all[started_].start <= launch) start(started_++);
  while (ended_ < by_end_.size() && all[by_end_[ended_]].done <= launch) finish(by_end_[ended_++]);
}

std::vector<CollectiveStep> ProgramCollectives::steps(std::size_t collective, int rank, int ranks,
                                                      bool gathers) const {
  std::vector<std::int64_t> elements;
  for (const std::size_t position : elements_[collective]) elements.push_back(sizes_[position]);
  return steps_of(program_, program_.collectives[collective], {rank, ranks, elements, buffers_}, gathers);
}

UserError ProgramCollectives::stalled(std::size_t collective, const StalledExchange& stalled) const {
  const Collective& its = program_.collectives[collective];
  const Collective::Part& part = its.parts.front();
  return rank_stalled(ranks_->rank(), ranks_->timeout(), stalled, "the collective of " + part.op.to_string(),
                      its.axis, part.loc, part.op.op_name());
}

UserError ProgramCollectives::of_collective(std::size_t collective, const UserError& error) const {
  const Collective& its = program_.collectives[collective];
  const Collective::Part& part = its.parts.front();
  return error.with_note(
      fmt::format("in the collective of {} over {}, {}", part.op.to_string(), its.axis, part.loc.to_string()));
}

}  // namespace lathe
