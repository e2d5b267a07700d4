#include "runtime/cuda/ranks/cuda_collectives.h"

#include <chrono>

#include "ir/support/error.h"
#include "runtime/host/seconds.h"

namespace lathe::cuda {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds between_looks{1};

Driver::Pointer device_pointer(const std::byte* at) { return reinterpret_cast<Driver::Pointer>(at); }

}  // namespace

CudaCollectives::CudaCollectives(const Program& program, DimTable& table, DeviceGroups& groups, Driver& driver,
                                 const Stream& compute, Fold fold)
    : ProgramCollectives(program, table, &groups.ranks()),
      groups_(groups),
      driver_(driver),
      compute_(compute),
      own_(driver),
      fold_(std::move(fold)) {
  for (const Collective& collective : program.collectives) {
    groups_.join(collective.axis);
    ready_.emplace_back(driver_);
    done_.emplace_back(driver_);
  }
}

void CudaCollectives::begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers) {
  restart(sizes, buffers);
  progress_ = {};
  watch_ = ranks_->start([this](Communicator& world) { watch(world); });
}

/// Attributes errors of NCCL to a collective. NCCL does not report it, but collectives run in order, so it is the
/// first incomplete one.
template <class F>
void CudaCollectives::telling(std::size_t collective, const F& calls) const {
  try {
    calls();
  } catch (const UserError& error) {
    if (error.label() != "nccl_failed" || collective == program_.collectives.size()) throw;
    throw of_collective(collective, error);
  }
}

void CudaCollectives::start(std::size_t collective) {
  ready_[collective].record(compute_);
  ready_[collective].hold(own_);
  {
    const std::lock_guard lock(mutex_);
    progress_.begun = collective + 1;
  }
  const Collective& its = program_.collectives[collective];
  const auto place = static_cast<int>(ranks_->mesh().index(ranks_->rank(), ranks_->mesh().find(its.axis)));
  telling(collective, [&] {
    for (const CollectiveStep& step : steps(collective, place, static_cast<int>(its.ranks), true))
      carry_out(its.axis, step);
  });
  done_[collective].record(own_);
  const std::lock_guard lock(mutex_);
  progress_.put = collective + 1;
}

void CudaCollectives::carry_out(const std::string& axis, const CollectiveStep& step) {
  LATHE_ASSERT(step.rounds.size() == 1);  // GPUs reduce all pieces in one round
  const CollectiveStep::Round& round = step.rounds.front();
  for (const CollectiveStep::Copy& copy : round.copies)
    driver_.copy_on_device(device_pointer(copy.to), device_pointer(copy.from), copy.bytes, own_.handle());
  if (!step.gathers.empty())
    groups_.put(axis, [&](const Nccl& nccl, Nccl::Comm comm) {
      for (const CollectiveStep::Gather& gather : step.gathers)
        nccl.all_gather(comm, gather.from, gather.to, gather.bytes, own_.handle());
    });
  if (!step.sends.empty() || !round.receives.empty())
    groups_.put(axis, [&](const Nccl& nccl, Nccl::Comm comm) {
      for (const Message& message : step.sends)
        nccl.send(comm, message.peer, message.data, message.bytes, own_.handle());
      for (const Message& message : round.receives)
        nccl.receive(comm, message.peer, message.data, message.bytes, own_.handle());
    });
  ranks_->count_sent(step.sent);
  for (const CollectiveStep::Fold& fold : round.folds) fold_(*fold.part->fold, own_);
}

void CudaCollectives::finish(std::size_t collective) { done_[collective].hold(compute_); }

void CudaCollectives::tell_over() {
  const std::lock_guard lock(mutex_);
  progress_.is_over = true;
  changed_.notify_all();
}

void CudaCollectives::end() {
  tell_over();
  ranks_->wait(*std::exchange(watch_, std::nullopt));
}

void CudaCollectives::fail() {
  std::exception_ptr why = std::current_exception();
  tell_over();
  try {
    if (watch_) ranks_->wait(*std::exchange(watch_, std::nullopt));
  } catch (...) {
    why = std::current_exception();
  }
  groups_.abort();
  try {
    own_.synchronize();
    driver_.synchronize(compute_.handle());
  } catch (const UserError&) {  // `why` is more specific
  }
  std::rethrow_exception(why);
}

void CudaCollectives::watch(Communicator& world) {
  try {
    watch_until_over(world);
  } catch (...) {
    groups_.abort();
    throw;
  }
}

void CudaCollectives::watch_until_over(Communicator& world) {
  const Context context(driver_, groups_.device());
  std::size_t over = 0;  // number of completed collectives
  auto since = Clock::now();
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, between_looks, [&] { return progress_.is_over; });
    const Progress now = progress_;
    lock.unlock();
    if (now.is_over) return;
    world.check();
    telling(over, [&] { groups_.check(); });
    const std::size_t before = over;
    while (over < now.put && done_[over].has_passed()) ++over;
    const bool waits = over == before && over < now.begun && ready_[over].has_passed();
    if (!waits) since = Clock::now();
    if (ranks_->timeout() > 0 && seconds_since(since) > ranks_->timeout()) throw stalled(over, all_others(over));
  }
}

/// Returns an error with all other ranks, because NCCL does not report which one it waits for.
StalledExchange CudaCollectives::all_others(std::size_t collective) const {
  const std::string& axis = program_.collectives[collective].axis;
  const auto own = ranks_->mesh().index(ranks_->rank(), ranks_->mesh().find(axis));
  std::vector<int> others;
  for (int r = 0; r < program_.collectives[collective].ranks; ++r)
    if (r != own) others.push_back(r);
  return StalledExchange(others);
}

}  // namespace lathe::cuda
