#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/kernel/phases.h"
#include "passes/gpu/join/phase_plan.h"
#include "passes/gpu/join/prefetch_plan.h"
#include "passes/program/program.h"

namespace lathe::gpu {

/// The indices of joined kernels in their program, by canonical text.
using JoinedKernels = std::unordered_map<std::string, int>;

/// Builds a kernel whose phases are launches of a program, in their order but for late ones (plan_phases).
class JoinedKernel {
 public:
  /// The first launch is number `first`. The program must outlive it.
  JoinedKernel(const Program& program, int first) : program_(program), first_(first) {}

  /// Returns whether the arguments of this launch too fit those of a kernel.
  bool has_room_for(const Launch& launch) const;
  void add(const Launch& launch);
  /// Adds the kernel to the program, unless it is known, and returns its launch. Barriers prefetch weights up to
  /// `window` bytes ahead.
  Launch finish(Program& program, JoinedKernels& known, std::int64_t window) &&;

 private:
  kernel::BufferId parameter(int buffer, const kernel::BufferInfo& info);
  kernel::ValueId dim(const Dim& size);
  void note_accesses(const Launch& launch, const kernel::KernelPhase& phase);
  void note_weights(const Launch& launch);
  void note_rows(const Launch& launch, const RowsRead& read);
  PhasePlan plan() const;
  void clear(const std::vector<int>& buffers);
  PrefetchPlan prefetches(std::int64_t window) const;
  kernel::Instruction prefetch_of(const PrefetchPlan::Range& range);
  void put(kernel::Instruction instruction);
  int add_kernel(Program& program, JoinedKernels& known);

  const Program& program_;
  int first_;
  kernel::Kernel kernel_ = {};
  Launch launch_ = {};
  std::map<int, int> phase_kernels_;            ///< by kernel of the program
  std::map<int, kernel::BufferId> parameters_;  ///< by buffer of the program
  std::vector<kernel::KernelPhase> phases_;     ///< by launch
  std::vector<PhaseAccesses> accesses_;         ///< by launch
  std::vector<StreamedBuffer> streams_;         ///< weights, unless a phase writes them, and caches
  std::int64_t checks_ = 0;                     ///< of all launches
};

}  // namespace lathe::gpu
