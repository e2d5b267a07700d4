#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "codegen/cuda/prelude/prelude.h"
#include "ir/kernel/interpret/interpreter.h"
#include "tests/cuda/host/host_build.h"

namespace lathe::test {

/// ThreadSanitizer's report on a launch.
struct Race : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The CUDA text of kernels, built like HostCuda but with an OS thread per thread of a block, under ThreadSanitizer.
/// Accesses are ordered by what orders them on a GPU: barriers of the block or a warp, mbarriers, waits for copies.
/// The order of blocks, and the meeting of a warp's threads in mma, wgmma or from_lane, do not order them.
class RacingCuda {
 public:
  /// Builds all kernels at once, as a program. Returns nothing and prints SKIP if there is no C++ compiler or its
  /// ThreadSanitizer does not work here.
  static std::optional<RacingCuda> build(std::span<const kernel::Kernel> kernels,
                                         const std::string& prelude = cuda::prelude());

  /// Runs a launch in the program's process and returns the status word. Throws Race if two threads access the same
  /// memory without ordering and one of them writes; InternalError if the launch fails or does not finish. The next
  /// launch then starts a new process.
  std::int64_t run(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                   std::span<const std::int64_t> dims, std::uint64_t seed = 1);

 private:
  class Process;
  struct EndProcess {
    void operator()(Process* process) const;
  };

  explicit RacingCuda(std::span<const kernel::Kernel> kernels)
      : text_(kernels), scratch_(std::make_unique<ScratchFolder>()) {}

  HostText text_;
  std::unique_ptr<ScratchFolder> scratch_;
  std::unique_ptr<Process, EndProcess> process_;
};

}  // namespace lathe::test
