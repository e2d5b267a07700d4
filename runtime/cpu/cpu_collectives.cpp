#include "runtime/cpu/cpu_collectives.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace lathe {

namespace {

bool sums(const Collective& collective) {
  return collective.kind == Collective::Kind::all_reduce || collective.kind == Collective::Kind::reduce_scatter;
}

}  // namespace

CpuCollectives::CpuCollectives(const Program& program, const codegen::CompiledKernels& kernels, DimTable& table,
                               Ranks* ranks)
    : ProgramCollectives(program, table, ranks), kernels_(kernels), jobs_(program.collectives.size()) {
  for (const Collective& collective : program.collectives) {
    const auto is_tensor = [](const Collective::Part& part) { return !(part.elements == Dim(1)); };
    if (sums(collective) && std::ranges::any_of(collective.parts, is_tensor))
      last_sum_ = std::max(last_sum_, collective.start);
  }
}

void CpuCollectives::begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers) {
  restart(sizes, buffers);
  all_made_ = false;
}

void CpuCollectives::start(std::size_t collective) {
  if (program_.collectives[collective].start >= last_sum_) all_made_ = true;
  const auto carry = [this, collective](Communicator& group) { carry_out(collective, group); };
  jobs_[collective] = {ranks_->start(program_.collectives[collective].axis, carry), false};
}

void CpuCollectives::finish(std::size_t collective) {
  jobs_[collective].is_waited_for = true;
  ranks_->wait(jobs_[collective].number);
}

void CpuCollectives::stop() noexcept {
  if (!ranks_) return;
  ranks_->interrupt();
  for (Job& job : jobs_) {
    if (job.is_waited_for) continue;
    job.is_waited_for = true;
    (void)ranks_->outcome(job.number);  // the run has already failed
  }
}

void CpuCollectives::carry_out(std::size_t collective, Communicator& group) const {
  const bool is_early = !all_made_, is_sum = sums(program_.collectives[collective]);
  for (const CollectiveStep& step : steps(collective, group.rank(), group.size(), false)) {
    std::vector<std::vector<Message>> receives;
    for (const CollectiveStep::Round& round : step.rounds) receives.push_back(round.receives);
    const auto take = [&](std::size_t number) {
      const CollectiveStep::Round& round = step.rounds[number];
      for (const CollectiveStep::Copy& copy : round.copies) std::memmove(copy.to, copy.from, copy.bytes);
      for (const CollectiveStep::Fold& its : round.folds) fold(its, group.size());
    };
    try {
      group.exchange_in_rounds(step.sends, receives, ranks_->timeout(), take);
    } catch (const StalledExchange& stall) {
      throw stalled(collective, stall);
    }
    ranks_->count_sent(step.sent);
    if (is_sum) ranks_->count_summed({step.sent.tensors, is_early ? step.sent.tensors : 0});
  }
}

void CpuCollectives::fold(const CollectiveStep::Fold& fold, int ranks) const {
  const Launch& launch = *fold.part->fold;
  const auto& kernel = kernels_[launch.kernel];
  std::array<void*, 2> buffers{fold.from, fold.to};
  const std::array<std::int64_t, 2> values{ranks, fold.elements * ranks};
  std::int64_t status = 0;
  const std::int64_t extent = kernel.extent(values.data());
  if (extent > 0) kernel.run(buffers.data(), values.data(), 0, extent, &status);
}

}  // namespace lathe
