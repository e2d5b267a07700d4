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
#include "runtime/ranks/program_exchanges.h"

namespace lathe::cuda {

/// Exchanges in the memory of GPUs. They go on a stream of their own, beside launches on the stream that computes:
/// an exchange waits, by events, for the launches before its start, and launches from its end on wait for it. The
/// host waits for neither. While a run is under way, the communicating thread of the ranks watches over it, for a
/// kernel that waits for another rank's message waits for ever.
class CudaExchanges final : public ProgramExchanges {
 public:
  /// Puts the fold of a part on a stream.
  using Fold = std::function<void(const Launch& fold, const Stream& stream)>;
  /// As ProgramExchanges; joins the ranks of the axes that the program exchanges along, which all call it. `groups`
  /// and `compute`, the stream of launches, must outlive it.
  CudaExchanges(const Program& program, DimTable& table, DeviceGroups& groups, Driver& driver, const Stream& compute,
                Fold fold);

  /// A run begins: the sizes of the table, and where buffers lie on the device.
  void begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers);
  /// The run is over, and all of its streams are done. Throws what went wrong on its way: UserError [rank_stalled],
  /// [rank_failed], [nccl_failed].
  void end();
  /// The run has failed by what is thrown just now: what is under way ends, and touches no memory any more. Throws
  /// why: what the watch has found, where it has found something.
  [[noreturn]] void fail();

 private:
  void start(std::size_t exchange) override;
  void finish(std::size_t exchange) override;
  void carry_out(const std::string& axis, const ExchangeStep& step);
  /// On the communicating thread.
  void watch(Communicator& world);
  void watch_until_over(Communicator& world);
  StalledExchange all_others(std::size_t exchange) const;
  /// Runs calls; what of NCCL fails in them is told with this exchange.
  template <class F>
  void telling(std::size_t exchange, const F& calls) const;
  void tell_over();

  DeviceGroups& groups_;
  Driver& driver_;
  const Stream& compute_;
  Stream own_;
  Fold fold_;
  std::vector<Event> ready_, done_;  ///< by exchange: its operands are there; its results are

  /// How far the host is with a run.
  struct Progress {
    std::size_t begun = 0, put = 0;  ///< exchanges whose start was reached, and that are wholly on the stream
    bool is_over = false;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_;
  std::optional<std::uint64_t> watch_;  ///< a job of the ranks
};

}  // namespace lathe::cuda
