#pragma once

#include <map>
#include <vector>

#include "ir/kernel/phases.h"
#include "passes/gpu/join/prefetch_plan.h"
#include "passes/program/program.h"

namespace lathe::gpu {

/// Builds a kernel whose phases are launches of a program, in order.
class JoinedKernel {
 public:
  /// The first launch is number `first`. The program must outlive it.
  JoinedKernel(const Program& program, int first) : program_(program), first_(first) {}

  /// Returns whether the arguments of this launch too fit those of a kernel.
  bool has_room_for(const Launch& launch) const;
  void add(const Launch& launch);
  /// Adds the kernel to the program and returns its launch. Barriers prefetch weights up to `window` bytes ahead.
  Launch finish(Program& program, std::int64_t window) &&;

 private:
  struct Step {
    kernel::KernelPhase phase;
    bool follows_barrier = false;
  };
  kernel::BufferId parameter(int buffer, const kernel::BufferInfo& info);
  kernel::ValueId dim(const Dim& size);
  void note_weights(const Launch& launch);
  PrefetchPlan prefetches(std::int64_t window) const;
  void put(kernel::Instruction instruction);
  bool needs_barrier(const kernel::KernelPhase& phase) const;

  const Program& program_;
  int first_;
  kernel::Kernel kernel_ = {};
  Launch launch_ = {};
  std::map<int, int> phase_kernels_;             ///< by kernel of the program
  std::map<int, kernel::BufferId> parameters_;   ///< by buffer of the program
  std::map<int, kernel::Access> since_barrier_;  ///< by parameter
  std::vector<Step> steps_;
  std::vector<StreamedBuffer> streams_;  ///< weights, unless a phase writes them
  std::int64_t checks_ = 0;              ///< of all launches
};

}  // namespace lathe::gpu
