#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/llvm/jit.h"
#include "runtime/ranks/program_exchanges.h"

namespace lathe {

/// Exchanges in the memory of a process, carried out by the communicating thread of its ranks.
class CpuExchanges final : public ProgramExchanges {
 public:
  /// As ProgramExchanges; `kernels` must outlive it.
  CpuExchanges(const Program& program, const codegen::CompiledKernels& kernels, DimTable& table, Ranks* ranks);

  /// A run begins: the sizes of the table, and where buffers lie.
  void begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers);
  /// The run has failed: what is under way ends, and touches no memory any more.
  void stop() noexcept;

 private:
  void start(std::size_t exchange) override;
  void finish(std::size_t exchange) override;
  /// On the communicating thread.
  void carry_out(std::size_t exchange, Communicator& group) const;
  void fold(const ExchangeStep::Fold& fold, int ranks) const;

  const codegen::CompiledKernels& kernels_;
  struct Job {
    std::uint64_t number = 0;
    bool is_waited_for = true;
  };
  std::vector<Job> jobs_;               ///< by exchange
  int last_sum_ = 0;                    ///< the launch before which the last value to be summed is there
  std::atomic<bool> all_made_ = false;  ///< the launches have come there
};

}  // namespace lathe
