#include "runtime/ranks/ranks.h"

#include <fmt/core.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "ir/ops/collectives.h"
#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"
#include "runtime/ranks/rank_stalled.h"

namespace lathe {

struct Ranks::Impl {
  shard::Mesh mesh;
  RanksOptions options;
  DimBindings positions;
  int rank = 0, size = 0;
  std::unique_ptr<Communicator> world;
  std::vector<std::unique_ptr<Communicator>> axes;  ///< by axis of the mesh

  struct Waiting {
    std::uint64_t number;
    Communicator* group;
    Job run;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Waiting> queue;
  std::map<std::uint64_t, std::exception_ptr> over;  ///< completed jobs that have not been waited for
  std::uint64_t next = 0;
  SentBytes sent;
  SummedBytes summed;
  bool is_set_up = false, is_closing = false;
  std::exception_ptr failure;  ///< error during set-up
  std::thread thread;

  void main(const MakeCommunicator& make);
  void set_up(const MakeCommunicator& make);
  void carry_out_jobs();
  std::uint64_t add(Communicator& group, Job job);
  /// Starts a job among the ranks of an axis, or all ranks if `axis` is "", and waits for it.
  void carry_out(Ranks& ranks, const Job& job, const std::string& what, const std::string& axis);
};

namespace {

/// Returns the message that all ranks receive for an error of one rank.
std::string told(int rank, int size, std::string_view error) {
  return fmt::format("rank {} of {} failed: {}", rank, size, error);
}

}  // namespace

void Ranks::Impl::set_up(const MakeCommunicator& make) {
  world = make();
  rank = world->rank();
  size = world->size();
  if (mesh.size() != size)
    throw UserError(fmt::format("the mesh {} has {} processes, and {} run ({})", mesh.to_string(), mesh.size(), size,
                                world->engine()),
                    "mesh_processes",
                    options.how_to_start.empty() ? fmt::format("start {0}, as in mpirun -n {0}", mesh.size())
                                                 : options.how_to_start);
  for (int axis = 0; axis < mesh.axis_count(); ++axis) {
    // The ranks of a group differ only in this axis, so its first rank is a unique color.
    try {
      axes.push_back(world->split(static_cast<int>(mesh.group(rank, axis).front()), options.timeout));
    } catch (const StalledExchange& stalled) {
      const auto error = [&] { return rank_stalled(rank, options.timeout, stalled, "the start of the ranks", ""); };
      world->abort(told(rank, size, error().what()));  // the communicator cannot be destroyed while other ranks hang
      throw error();
    }
    positions[ir::mesh_index_dim(mesh[axis].name)] = mesh.index(rank, axis);
  }
}

void Ranks::Impl::main(const MakeCommunicator& make) {
  const FloatEnvironment environment;
  try {
    set_up(make);
  } catch (...) {
    failure = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex);
    is_set_up = true;
    changed.notify_all();
  }
  if (!failure) carry_out_jobs();
  axes.clear();
  world.reset();
}

void Ranks::Impl::carry_out_jobs() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return is_closing || !queue.empty(); });
    if (queue.empty()) return;
    Waiting job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      job.run(*job.group);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    over.emplace(job.number, error);
    changed.notify_all();
  }
}

std::uint64_t Ranks::Impl::add(Communicator& group, Job job) {
  const std::lock_guard lock(mutex);
  queue.push_back({next, &group, std::move(job)});
  changed.notify_all();
  return next++;
}

Ranks::Ranks(const MakeCommunicator& make, shard::Mesh mesh, const RanksOptions& options)
    : impl_(std::make_unique<Impl>()) {
  if (!(options.timeout >= 0))
    throw UserError(fmt::format("an exchange is to wait {} seconds", options.timeout), "compile_options",
                    "give seconds, 0 to wait for ever");
  impl_->mesh = std::move(mesh);
  impl_->options = options;
  impl_->thread = std::thread([this, &make] { impl_->main(make); });
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->is_set_up; });
  lock.unlock();
  if (!impl_->failure) return;
  impl_->thread.join();
  std::rethrow_exception(impl_->failure);
}

Ranks::~Ranks() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->is_closing = true;
    impl_->changed.notify_all();
  }
  impl_->thread.join();
}

int Ranks::rank() const { return impl_->rank; }
int Ranks::size() const { return impl_->size; }
const shard::Mesh& Ranks::mesh() const { return impl_->mesh; }
double Ranks::timeout() const { return impl_->options.timeout; }
const DimBindings& Ranks::positions() const { return impl_->positions; }

std::uint64_t Ranks::start(const std::string& axis, Job job) {
  return impl_->add(*impl_->axes[impl_->mesh.find(axis)], std::move(job));
}
std::uint64_t Ranks::start(Job job) { return impl_->add(*impl_->world, std::move(job)); }

std::exception_ptr Ranks::outcome(std::uint64_t job) {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->over.contains(job); });
  return impl_->over.extract(job).mapped();
}

void Ranks::wait(std::uint64_t job) {
  if (const std::exception_ptr error = outcome(job)) std::rethrow_exception(error);
}

void Ranks::Impl::carry_out(Ranks& ranks, const Job& job, const std::string& what, const std::string& axis) {
  try {
    ranks.wait(axis.empty() ? ranks.start(job) : ranks.start(axis, job));
  } catch (const StalledExchange& stalled) {
    throw rank_stalled(rank, options.timeout, stalled, what, axis);
  }
}

void Ranks::exchange(std::span<const Message> sends, std::span<const Message> receives) {
  impl_->carry_out(
      *this, [&](Communicator& group) { group.exchange(sends, {receives.begin(), receives.end()}, timeout()); },
      "an exchange", "");
}

std::vector<std::string> Ranks::gather(const std::string& own, const std::string& axis) {
  std::vector<std::string> texts;
  impl_->carry_out(
      *this, [&](Communicator& group) { texts = gather_texts(group, own, timeout()); }, "a gather", axis);
  return texts;
}

void Ranks::count_sent(const SentBytes& more) {
  const std::lock_guard lock(impl_->mutex);
  impl_->sent.tensors += more.tensors;
  impl_->sent.scalars += more.scalars;
}

SentBytes Ranks::sent() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->sent;
}

void Ranks::count_summed(const SummedBytes& more) {
  const std::lock_guard lock(impl_->mutex);
  impl_->summed.all += more.all;
  impl_->summed.early += more.early;
}

SummedBytes Ranks::summed() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->summed;
}

void Ranks::interrupt() noexcept { impl_->world->interrupt(); }

void Ranks::abort(const std::string& error) noexcept {
  interrupt();
  const std::string why = told(rank(), size(), error);
  wait(start([&](Communicator& group) { group.abort(why); }));
}

void Ranks::abort(const std::exception& error) noexcept {
  abort(dynamic_cast<const std::bad_alloc*>(&error) ? std::string("out of memory") : std::string(error.what()));
}

void ending_all(Ranks& ranks, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    ranks.abort(error);
    throw;
  }
}

}  // namespace lathe
