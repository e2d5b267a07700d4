#include "runtime/cpu/cpu_exchanges.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lathe {

namespace {

bool sums(const Exchange& exchange) {
  return exchange.kind == Exchange::Kind::all_reduce || exchange.kind == Exchange::Kind::reduce_scatter;
}

}  // namespace

CpuExchanges::CpuExchanges(const Program& program, const codegen::CompiledKernels& kernels, DimTable& table,
                           Ranks* ranks)
    : ProgramExchanges(program, table, ranks), kernels_(kernels), jobs_(program.exchanges.size()) {
  for (const Exchange& exchange : program.exchanges) {
    const auto is_tensor = [](const Exchange::Part& part) { return !(part.elements == Dim(1)); };
    if (sums(exchange) && std::ranges::any_of(exchange.parts, is_tensor))
      last_sum_ = std::max(last_sum_, exchange.start);
  }
}

void CpuExchanges::begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers) {
  restart(sizes, buffers);
  all_made_ = false;
}

void CpuExchanges::start(std::size_t exchange) {
  if (program_.exchanges[exchange].start >= last_sum_) all_made_ = true;
  const auto carry = [this, exchange](Communicator& group) { carry_out(exchange, group); };
  jobs_[exchange] = {ranks_->start(program_.exchanges[exchange].axis, carry), false};
}

void CpuExchanges::finish(std::size_t exchange) {
  jobs_[exchange].is_waited_for = true;
  ranks_->wait(jobs_[exchange].number);
}

void CpuExchanges::stop() noexcept {
  if (!ranks_) return;
  ranks_->interrupt();
  for (Job& job : jobs_) {
    if (job.is_waited_for) continue;
    job.is_waited_for = true;
    (void)ranks_->outcome(job.number);  // the run has already failed
  }
}

void CpuExchanges::carry_out(std::size_t exchange, Communicator& group) const {
  const bool is_early = !all_made_, is_sum = sums(program_.exchanges[exchange]);
  for (const ExchangeStep& step : steps(exchange, group.rank(), group.size(), false)) {
    std::vector<std::vector<Message>> receives;
    for (const ExchangeStep::Round& round : step.rounds) receives.push_back(round.receives);
    const auto take = [&](std::size_t number) {
      const ExchangeStep::Round& round = step.rounds[number];
      for (const ExchangeStep::Copy& copy : round.copies) std::memmove(copy.to, copy.from, copy.bytes);
      for (const ExchangeStep::Fold& its : round.folds) fold(its, group.size());
    };
    try {
      group.exchange_in_rounds(step.sends, receives, ranks_->timeout(), take);
    } catch (const StalledExchange& stall) {
      throw stalled(exchange, stall);
    }
    ranks_->count_sent(step.sent);
    if (is_sum) ranks_->count_summed({step.sent.tensors, is_early ? step.sent.tensors : 0});
  }
}

void CpuExchanges::fold(const ExchangeStep::Fold& fold, int ranks) const {
  const Launch& launch = *fold.part->fold;
  const auto& kernel = kernels_[static_cast<std::size_t>(launch.kernel)];
  std::array<void*, 2> buffers{fold.from, fold.to};
  const std::array<std::int64_t, 2> values{ranks, fold.elements * ranks};
  std::int64_t status = 0;
  const std::int64_t extent = kernel.extent(values.data());
  if (extent > 0) kernel.run(buffers.data(), values.data(), 0, extent, &status);
}

}  // namespace lathe
