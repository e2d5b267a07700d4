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

/// The CUDA text of kernels, built by this machine's C++ compiler under tests/cuda/shim and loaded. The same text is
/// passed to NVRTC.
class HostCuda {
 public:
  /// Builds all kernels at once; equal ones are built once. Returns nothing and prints SKIP if this machine has no
  /// compiler, or no x86-64 CPU, which the fibers need. Text that does not compile is a failure. `prelude` replaces
  /// lathe.cuh, so that a test can insert a mistake.
  static std::optional<HostCuda> build(std::span<const kernel::Kernel> kernels,
                                       const std::string& prelude = cuda::prelude());

  /// Runs a kernel that was given to build(), with blocks and threads in an order chosen by the seed, and returns the
  /// status word. Signed integer overflow terminates the process. Throws InternalError if the threads of a block do
  /// not reach the same barriers.
  std::int64_t run(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                   std::span<const std::int64_t> dims, std::uint64_t seed = 1) const;

 private:
  using Entry = int (*)(void* const* buffers, const std::int64_t* dims, const void* maps, const long long* grid,
                        const int* block, unsigned long long seed, unsigned long long* status);
  std::map<std::string, Entry> entries_;  ///< by canonical text
};

}  // namespace lathe::test
