#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "codegen/llvm/jit.h"
#include "runtime/ranks/program_collectives.h"

namespace lathe {

/// Collectives in CPU memory. They run on the communication thread of the process's Ranks.
class CpuCollectives final : public ProgramCollectives {
 public:
  /// See ProgramCollectives; `kernels` must outlive it.
  CpuCollectives(const Program& program, const codegen::CompiledKernels& kernels, DimTable& table, Ranks* ranks);

  /// Starts a run with the sizes of the table and the addresses of the buffers.
  void begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers);
  /// Interrupts collectives after the run has failed. They no longer access memory when this returns.
  void stop() noexcept;

 private:
  void start(std::size_t collective) override;
  void finish(std::size_t collective) override;
  /// Performs a collective on the communication thread.
  void carry_out(std::size_t collective, Communicator& group) const;
  void fold(const CollectiveStep::Fold& fold, int ranks) const;

  const codegen::CompiledKernels& kernels_;
  struct Job {
    std::uint64_t number = 0;
    bool is_waited_for = true;
  };
  std::vector<Job> jobs_;               ///< by collective
  int last_sum_ = 0;                    ///< start of the last collective that sums tensors
  std::atomic<bool> all_made_ = false;  ///< the launches have reached last_sum_
};

}  // namespace lathe
