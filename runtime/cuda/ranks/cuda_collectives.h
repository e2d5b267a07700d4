#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/ranks/device_groups.h"
#include "runtime/ranks/program_collectives.h"

namespace lathe::cuda {

/// Collectives in GPU memory. They use their own stream, concurrent with launches on the compute stream. Events order
/// them: a collective waits for the launches before its start, and launches that need its results wait for it. The
/// host does not wait. During a run, the communication thread of the ranks runs a watchdog, because a kernel that
/// waits for another rank's message never times out.
class CudaCollectives final : public ProgramCollectives {
 public:
  /// Enqueues the reduction of a part.
  using Fold = std::function<void(const Launch& fold, const Stream& stream)>;
  /// See ProgramCollectives. Joins the ranks of all axes along which the program exchanges; all of them must call it.
  /// `groups` and `compute`, the stream of launches, must outlive it.
  CudaCollectives(const Program& program, DimTable& table, DeviceGroups& groups, Driver& driver,
                  const Stream& compute, Fold fold);

  /// Starts a run with the sizes of the table and the device addresses of the buffers.
  void begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers);
  /// Ends a run after all of its streams have completed. Throws errors that occurred during the run: UserError
  /// [rank_stalled], [rank_failed], [nccl_failed].
  void end();
  /// Ends a run that failed with the current exception. Stops current collectives, so that they no longer access
  /// memory. Rethrows the watchdog's error if there is one, otherwise the current exception.
  [[noreturn]] void fail();

 private:
  void start(std::size_t collective) override;
  void finish(std::size_t collective) override;
  void carry_out(const std::string& axis, const CollectiveStep& step);
  /// Runs the watchdog on the communication thread.
  void watch(Communicator& world);
  void watch_until_over(Communicator& world);
  StalledExchange all_others(std::size_t collective) const;
  /// Runs calls and adds the collective to errors of NCCL.
  template <class F>
  void telling(std::size_t collective, const F& calls) const;
  void tell_over();

  DeviceGroups& groups_;
  Driver& driver_;
  const Stream& compute_;
  Stream own_;
  Fold fold_;
  std::vector<Event> ready_, done_;  ///< by collective: its operands are ready; its results are ready

  /// The host's progress in a run.
  struct Progress {
    std::size_t begun = 0, put = 0;  ///< collectives whose start was reached, and collectives fully enqueued
    bool is_over = false;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_;
  std::optional<std::uint64_t> watch_;  ///< job of the ranks
};

}  // namespace lathe::cuda
