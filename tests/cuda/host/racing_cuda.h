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

/// What ThreadSanitizer says of a launch.
struct Race : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The CUDA text of some kernels, as HostCuda builds it, but with a thread of the operating system for every thread
/// of a block and under ThreadSanitizer. What orders accesses there is what orders them on a GPU: barriers of the
/// block, of a warp, mbarriers, waits for copies; not the order of blocks, nor that a warp's threads meet in mma,
/// wgmma or from_lane.
class RacingCuda {
 public:
  /// Builds them all at once, to a program. Nothing, and SKIP on standard output, where there is no C++ compiler or
  /// its ThreadSanitizer does not run here.
  static std::optional<RacingCuda> build(std::span<const kernel::Kernel> kernels,
                                         const std::string& prelude = cuda::prelude());

  /// Runs a launch in the program's process; gives the status word. Throws Race where two threads access the same
  /// memory, one of them writing, in no order; InternalError where the launch fails or does not end. The next launch
  /// is in a new process then.
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
