#include "runtime/cuda/ranks/cuda_exchanges.h"

#include <chrono>

#include "ir/support/error.h"
#include "runtime/host/seconds.h"

namespace lathe::cuda {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds between_looks{1};

Driver::Pointer device_pointer(const std::byte* at) { return reinterpret_cast<Driver::Pointer>(at); }

}  // namespace

CudaExchanges::CudaExchanges(const Program& program, DimTable& table, DeviceGroups& groups, Driver& driver,
                             const Stream& compute, Fold fold)
    : ProgramExchanges(program, table, &groups.ranks()),
      groups_(groups),
      driver_(driver),
      compute_(compute),
      own_(driver),
      fold_(std::move(fold)) {
  for (const Exchange& exchange : program.exchanges) {
    groups_.join(exchange.axis);
    ready_.emplace_back(driver_);
    done_.emplace_back(driver_);
  }
}

void CudaExchanges::begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers) {
  restart(sizes, buffers);
  progress_ = {};
  watch_ = ranks_->start([this](Communicator& world) { watch(world); });
}

/// Attributes errors of NCCL to an exchange. NCCL does not report it, but exchanges run in order, so it is the first
/// incomplete one.
template <class F>
void CudaExchanges::telling(std::size_t exchange, const F& calls) const {
  try {
    calls();
  } catch (const UserError& error) {
    if (error.label() != "nccl_failed" || exchange == program_.exchanges.size()) throw;
    throw of_exchange(exchange, error);
  }
}

void CudaExchanges::start(std::size_t exchange) {
  ready_[exchange].record(compute_);
  ready_[exchange].hold(own_);
  {
    const std::lock_guard lock(mutex_);
    progress_.begun = exchange + 1;
  }
  const Exchange& its = program_.exchanges[exchange];
  const auto place = static_cast<int>(ranks_->mesh().index(ranks_->rank(), ranks_->mesh().find(its.axis)));
  telling(exchange, [&] {
    for (const ExchangeStep& step : steps(exchange, place, static_cast<int>(its.ranks), true))
      carry_out(its.axis, step);
  });
  done_[exchange].record(own_);
  const std::lock_guard lock(mutex_);
  progress_.put = exchange + 1;
}

void CudaExchanges::carry_out(const std::string& axis, const ExchangeStep& step) {
  LATHE_ASSERT(step.rounds.size() == 1);  // GPUs reduce all pieces in one round
  const ExchangeStep::Round& round = step.rounds.front();
  for (const ExchangeStep::Copy& copy : round.copies)
    driver_.copy_on_device(device_pointer(copy.to), device_pointer(copy.from), copy.bytes, own_.handle());
  if (!step.gathers.empty())
    groups_.put(axis, [&](const Nccl& nccl, Nccl::Comm comm) {
      for (const ExchangeStep::Gather& gather : step.gathers)
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
  for (const ExchangeStep::Fold& fold : round.folds) fold_(*fold.part->fold, own_);
}

void CudaExchanges::finish(std::size_t exchange) { done_[exchange].hold(compute_); }

void CudaExchanges::tell_over() {
  const std::lock_guard lock(mutex_);
  progress_.is_over = true;
  changed_.notify_all();
}

void CudaExchanges::end() {
  tell_over();
  ranks_->wait(*std::exchange(watch_, std::nullopt));
}

void CudaExchanges::fail() {
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

void CudaExchanges::watch(Communicator& world) {
  try {
    watch_until_over(world);
  } catch (...) {
    groups_.abort();
    throw;
  }
}

void CudaExchanges::watch_until_over(Communicator& world) {
  const Context context(driver_, groups_.device());
  std::size_t over = 0;  // number of completed exchanges
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
StalledExchange CudaExchanges::all_others(std::size_t exchange) const {
  const std::string& axis = program_.exchanges[exchange].axis;
  const auto own = ranks_->mesh().index(ranks_->rank(), ranks_->mesh().find(axis));
  std::vector<int> others;
  for (int r = 0; r < program_.exchanges[exchange].ranks; ++r)
    if (r != own) others.push_back(r);
  return StalledExchange(others);
}

}  // namespace lathe::cuda
