#include "runtime/ranks/cpu_exchanges.h"

#include <algorithm>
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
    auto& by_part = fold_dims_.emplace_back();
    for (const Exchange::Part& part : exchange.parts) {
      auto& dims = by_part.emplace_back();
      if (part.fold)
        for (const Dim& dim : part.fold->dims) dims.push_back(table.add(dim));
    }
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
    (void)ranks_->outcome(job.number);  // the run has failed already
  }
}

void CpuExchanges::carry_out(std::size_t exchange, Communicator& group) const {
  const bool is_early = !all_made_, is_sum = sums(program_.exchanges[exchange]);
  for (const ExchangeStep& step : steps(exchange, group.rank(), group.size(), false)) {
    for (const ExchangeStep::Copy& copy : step.copies) std::memmove(copy.to, copy.from, copy.bytes);
    try {
      group.exchange(step.sends, step.receives, ranks_->patience());
    } catch (const StalledExchange& stall) {
      throw stalled(exchange, stall);
    }
    ranks_->count_sent(step.sent);
    if (is_sum) ranks_->count_summed({step.sent.tensors, is_early ? step.sent.tensors : 0});
    for (const Exchange::Part* part : step.folds) {
      const auto number = static_cast<std::size_t>(part - program_.exchanges[exchange].parts.data());
      fold(*part, fold_dims_[exchange][number]);
    }
  }
}

void CpuExchanges::fold(const Exchange::Part& part, const std::vector<std::size_t>& dims) const {
  const auto& kernel = kernels_[static_cast<std::size_t>(part.fold->kernel)];
  std::vector<void*> buffers;
  for (const int b : part.fold->buffers) buffers.push_back(at(b));
  std::vector<std::int64_t> values;
  for (const std::size_t position : dims) values.push_back(size(position));
  std::int64_t status = 0;
  const std::int64_t extent = kernel.extent(values.data());
  if (extent > 0) kernel.run(buffers.data(), values.data(), 0, extent, &status);
}

}  // namespace lathe
