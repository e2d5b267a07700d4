#pragma once

#include <cstdint>
#include <vector>

#include "ir/kernel/kernel.h"

/// Kernels of phases, which run other kernels: Kernel::phase_kernels.
namespace lathe::kernel {

/// A run of all blocks of another kernel.
struct KernelPhase {
  int kernel = -1;                         ///< index into Kernel::phase_kernels
  std::vector<IntrinsicBuffer> buffers{};  ///< by parameter of that kernel, with the parameter's access
  std::vector<ValueId> dims{};             ///< constants, or dims of the kernel of phases
  std::int64_t code = 0;                   ///< added to the codes of its checks
  /// By parameter, a bit: loads wait until the element has been written, and stores end such waits.
  std::uint64_t awaited = 0;

  bool awaits(std::size_t parameter) const { return parameter < most_awaited && (awaited >> parameter & 1) != 0; }
  static constexpr std::size_t most_awaited = 63;  ///< parameters from there on are never awaited

  /// Returns the values of its dims. `of_dim(i)` is the value of dim i of the kernel of phases, `of_number(n)` that
  /// of a number.
  template <class OfDim, class OfNumber>
  auto dims_given(const Kernel& in, const OfDim& of_dim, const OfNumber& of_number) const {
    std::vector<decltype(of_number(0))> found;
    for (const ValueId id : dims) {
      const Instruction& value = in.values[id];
      found.push_back(value.op == Opcode::dim ? of_dim(value.integer) : of_number(value.integer));
    }
    return found;
  }
};

/// Returns the phases of a kernel, in order; none for other kernels.
std::vector<KernelPhase> phases_of(const Kernel& kernel);
/// Returns the phase that an instruction with IntrinsicTraits::runs_kernel runs.
KernelPhase phase_of(const Instruction& in);

/// Returns whether a kernel can be run by phases: it has neither tensor maps nor intrinsic regions, whose barriers
/// are for whole blocks of the grid, and its blocks are whole warps or a part of one.
bool can_be_phase(const Kernel& kernel);

/// Returns whether a phase of the kernel can await the elements of a parameter: floats, which are all loaded or all
/// stored, and which no intrinsic accesses.
bool can_be_awaited(const Kernel& kernel, std::size_t parameter);

}  // namespace lathe::kernel
