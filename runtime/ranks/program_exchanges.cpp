#include "runtime/ranks/program_exchanges.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "runtime/ranks/rank_stalled.h"

namespace lathe {

ProgramExchanges::ProgramExchanges(const Program& program, DimTable& table, Ranks* ranks)
    : program_(program), ranks_(ranks), by_end_(program.exchanges.size()) {
  for (const Exchange& exchange : program.exchanges) {
    std::vector<std::size_t>& elements = elements_.emplace_back();
    for (const Exchange::Part& part : exchange.parts) elements.push_back(table.add(part.elements));
    if (!ranks) continue;
    const int axis = ranks->mesh().find(exchange.axis);
    if (ranks->mesh()[axis].ranks != exchange.ranks)
      throw UserError(exchange.parts.front().loc, exchange.parts.front().op.op_name(),
                      fmt::format("it is one of {} processes along {}, and the mesh is {}", exchange.ranks,
                                  exchange.axis, ranks->mesh().to_string()),
                      "mesh_processes", "divide the graph over the mesh of the processes that run it");
  }
  std::iota(by_end_.begin(), by_end_.end(), std::size_t{0});
  std::ranges::stable_sort(by_end_, {}, [&](std::size_t e) { return program.exchanges[e].done; });
}

void ProgramExchanges::restart(std::span<const std::int64_t> sizes, std::span<void* const> buffers) {
  sizes_ = sizes;
  buffers_ = buffers;
  started_ = ended_ = 0;
}

void ProgramExchanges::before_launch(int launch) {
  if (!ranks_) return;
  const std::vector<Exchange>& all = program_.exchanges;
  while (started_ < all.size() && all[started_].start <= launch) start(started_++);
  while (ended_ < by_end_.size() && all[by_end_[ended_]].done <= launch) finish(by_end_[ended_++]);
}

std::vector<ExchangeStep> ProgramExchanges::steps(std::size_t exchange, int rank, int ranks, bool gathers) const {
  std::vector<std::int64_t> elements;
  for (const std::size_t position : elements_[exchange]) elements.push_back(sizes_[position]);
  return steps_of(program_, program_.exchanges[exchange], {rank, ranks, elements, buffers_}, gathers);
}

UserError ProgramExchanges::stalled(std::size_t exchange, const StalledExchange& stalled) const {
  const Exchange& its = program_.exchanges[exchange];
  const Exchange::Part& part = its.parts.front();
  return rank_stalled(ranks_->rank(), ranks_->timeout(), stalled, "the exchange of " + part.op.to_string(), its.axis,
                      part.loc, part.op.op_name());
}

UserError ProgramExchanges::of_exchange(std::size_t exchange, const UserError& error) const {
  const Exchange& its = program_.exchanges[exchange];
  const Exchange::Part& part = its.parts.front();
  return error.with_note(
      fmt::format("in the exchange of {} over {}, {}", part.op.to_string(), its.axis, part.loc.to_string()));
}

}  // namespace lathe
