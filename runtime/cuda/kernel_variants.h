#pragma once

#include <compare>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "passes/program/program_loops.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/platform.h"

namespace lathe::cuda {

/// The kernels of a program on a GPU. Those whose indices exceed 32 bits at some sizes, or that access slices of
/// loops that do not start at multiples of 16 bytes, are compiled again for that. Kernels that usually run only as
/// phases of others are compiled when a launch needs them.
class KernelVariants {
 public:
  /// `kernels` are those of the program, compiled for `arch` with 32-bit indices, or without code until they are
  /// needed. `threads` compile concurrently. The program and the platform must outlive it.
  KernelVariants(const Program& program, std::span<const CompiledKernel> kernels, const Platform& platform,
                 const Arch& arch, int threads);

  /// Returns the kernel of each launch, given the dims of the launches and the loops of the program; null for
  /// launches in `skipped`. Throws InternalError for a kernel that relies on an alignment that a slice does not have;
  /// verify_program finds that earlier.
  std::vector<const LoadedKernel*> choose(std::span<const Launch* const> launches,
                                          std::span<const std::vector<std::int64_t>> dims,
                                          const std::vector<bool>& skipped, std::span<const BoundLoop> loops);

 private:
  struct Variant {
    int kernel;
    Indices indices;
    std::vector<int> unaligned;  ///< parameters that may start at any element
    auto operator<=>(const Variant&) const = default;
  };

  std::vector<int> unaligned_parameters(const Launch& launch, std::span<const BoundLoop> loops) const;
  Variant variant_of(const Launch& launch, std::span<const std::int64_t> dims,
                     std::span<const BoundLoop> loops) const;
  static bool is_plain(const Variant& variant) {
    return variant.indices == Indices::int32 && variant.unaligned.empty();
  }
  void compile(const std::set<Variant>& variants, Indices indices);

  const Program& program_;
  const Platform& platform_;
  Arch arch_;
  const GpuInfo& gpu_;
  int threads_;
  std::map<int, LoadedKernel> kernels_;  ///< by kernel of the program
  std::map<Variant, LoadedKernel> variants_;
};

}  // namespace lathe::cuda
