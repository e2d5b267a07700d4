#include "runtime/cuda/ranks/device_groups.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "ir/support/error.h"
#include "runtime/host/seconds.h"
#include "runtime/ranks/agreement.h"
#include "runtime/ranks/rank_stalled.h"

namespace lathe::cuda {

namespace {

using Clock = std::chrono::steady_clock;

/// Timeout for an orderly shutdown of a group, because other ranks may be gone.
constexpr double leave_seconds = 10;

void rest() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

void require_own_device(Ranks& ranks, Driver& driver, int device) {
  const std::vector<std::string> ids = ranks.gather(driver.device_id(device));
  for (std::size_t a = 0; a < ids.size(); ++a)
    for (std::size_t b = a + 1; b < ids.size(); ++b)
      if (ids[a] == ids[b])
        throw_together(ranks, UserError(fmt::format("ranks {} and {} have the same GPU, {}", a, b, ids[a]),
                                        "rank_devices", "each rank needs a GPU of its own"));
}

}  // namespace

DeviceGroups::DeviceGroups(std::shared_ptr<Ranks> ranks, std::shared_ptr<const Nccl> nccl,
                           std::shared_ptr<Driver> driver, int device)
    : ranks_(std::move(ranks)),
      nccl_(std::move(nccl)),
      driver_(std::move(driver)),
      device_(device),
      context_(*driver_, device) {
  require_own_device(*ranks_, *driver_, device_);
  require_agreement(*ranks_, {{"the version of NCCL", nccl_->version(), "install the same one for all of them"}});
}

DeviceGroups::~DeviceGroups() {
  for (const auto& [axis, comm] : comms_) {
    try {
      context_.make_current();
      leave(comm);
    } catch (const UserError&) {  // errors cannot be reported in a destructor
      nccl_->abort(comm);
    }
  }
}

void DeviceGroups::join(const std::string& axis) {
  if (comms_.contains(axis)) return;
  const int number = ranks_->mesh().find(axis);
  const bool is_first = ranks_->mesh().index(ranks_->rank(), number) == 0;
  const std::string id = ranks_->gather(is_first ? nccl_->make_id() : "", axis).front();
  Nccl::Comm comm = nullptr;
  const auto job = [&](Communicator& group) { comm = joined(group, id); };
  try {
    ranks_->wait(ranks_->start(axis, job));
  } catch (const StalledExchange& stalled) {
    throw rank_stalled(ranks_->rank(), ranks_->timeout(), stalled, "the start of NCCL", axis);
  }
  const std::lock_guard lock(mutex_);
  comms_[axis] = comm;
}

/// Runs on the communication thread.
Nccl::Comm DeviceGroups::joined(Communicator& group, const std::string& id) const {
  const Context context(*driver_, device_);
  const auto start = Clock::now();
  Nccl::Comm comm = nccl_->join(id, group.rank(), group.size());
  try {
    while (!nccl_->is_ready(comm)) {
      group.check();
      if (ranks_->timeout() > 0 && seconds_since(start) > ranks_->timeout()) throw StalledExchange(others_of(group));
      rest();
    }
  } catch (...) {
    nccl_->abort(comm);
    throw;
  }
  return comm;
}

bool DeviceGroups::is_ready(Nccl::Comm comm) {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) throw UserError("collectives of this rank's GPU were ended", "rank_failed", "");
  return nccl_->is_ready(comm);
}

void DeviceGroups::put(const std::string& axis, const Calls& calls) {
  Nccl::Comm comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (is_aborted_) throw UserError("collectives of this rank's GPU were ended", "rank_failed", "");
    comm = comms_.at(axis);
    nccl_->begin_group();
    calls(*nccl_, comm);
    nccl_->end_group();
  }
  while (!is_ready(comm)) rest();  // a timeout elsewhere calls abort(), which ends this loop
}

void DeviceGroups::check() {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) return;
  for (const auto& [axis, comm] : comms_) static_cast<void>(nccl_->is_ready(comm));
}

void DeviceGroups::abort() noexcept {
  const std::lock_guard lock(mutex_);
  if (is_aborted_.exchange(true)) return;
  for (const auto& [axis, comm] : comms_) nccl_->abort(comm);
  comms_.clear();
}

void DeviceGroups::leave(Nccl::Comm comm) const {
  const auto start = Clock::now();
  nccl_->finalize(comm);
  while (!nccl_->is_ready(comm)) {
    if (seconds_since(start) > leave_seconds) throw UserError("NCCL does not end", "nccl_failed", "");
    rest();
  }
  nccl_->destroy(comm);
}

}  // namespace lathe::cuda
