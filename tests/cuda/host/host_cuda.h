#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/prelude/prelude.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/kernel.h"

namespace lathe::test {

/// The CUDA text of some kernels, built by this machine's C++ compiler under tests/cuda/shim and loaded: the very
/// text that goes to NVRTC.
class HostCuda {
 public:
  /// Builds them all at once; equal kernels are built once. Nothing where this machine has no compiler (or no x86-64
  /// processor, which the fibers need); says SKIP on standard output then. Text that does not compile is a failure.
  /// `prelude` stands for lathe.cuh: a test may put a mistake there.
  static std::optional<HostCuda> build(std::span<const kernel::Kernel> kernels,
                                       const std::string& prelude = cuda::prelude());

  /// Runs a kernel that build() was given, blocks and threads in an order that the seed chooses; gives the status
  /// word. A signed integer that overflows ends the process. Throws InternalError where the threads of a block do not
  /// meet the same barriers.
  std::int64_t run(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                   std::span<const std::int64_t> dims, std::uint64_t seed = 1) const;

 private:
  using Entry = int (*)(void* const* buffers, const std::int64_t* dims, const void* maps, const long long* grid,
                        const int* block, unsigned long long seed, unsigned long long* status);
  std::map<std::string, Entry> entries_;  ///< by canonical text
};

}  // namespace lathe::test
