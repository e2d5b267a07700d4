#pragma once

#include <memory>

#include "runtime/compile.h"
#include "runtime/cuda/platform.h"
#include "runtime/cuda/ranks/nccl.h"
#include "tests/cuda/device/mock_driver.h"
#include "tests/cuda/host/host_cuda.h"

namespace lathe::test {

/// A mock GPU: a mock driver that runs an executable's kernels on the host, either in the kernel interpreter (which
/// checks every access and finds races) or as CUDA text built by this machine's compiler.
class MockGpu {
 public:
  enum class By { interpreter, cuda_text };
  explicit MockGpu(By by = By::interpreter);

  MockDriver& driver() { return *driver_; }
  const cuda::Platform& platform() const { return *platform_; }
  /// Returns options to compile for it. The mock must outlive the compiled programs.
  CompileOptions options() const;
  /// Returns options for the GPU of one of several ranks.
  CompileOptions options(const std::shared_ptr<Ranks>& ranks, const std::shared_ptr<const cuda::Nccl>& nccl) const;
  /// Number of launches of kernels with 64-bit indices.
  int int64_launches() const { return int64_launches_; }
  /// Number of threads that each compilation was given.
  const std::vector<int>& compiling_threads() const { return compiling_threads_; }
  /// Whether the CUDA text can be built here; prints SKIP if not.
  bool works() const { return by_ == By::interpreter || has_compiler_; }

 private:
  std::vector<cuda::CompiledKernel> compile(std::span<const kernel::Kernel> kernels, cuda::Indices indices);
  void launch(const std::string& function, const cuda::Driver::Launch& launch);

  By by_;
  bool has_compiler_ = true;
  int int64_launches_ = 0;
  std::vector<int> compiling_threads_;
  std::shared_ptr<MockDriver> driver_ = std::make_shared<MockDriver>();
  struct Held {
    kernel::Kernel kernel;
    std::shared_ptr<const HostCuda> text;  ///< null: interpreted
    cuda::Indices indices;
  };
  std::map<std::string, Held> kernels_;  ///< by symbol
  std::shared_ptr<const cuda::Platform> platform_;
};

}  // namespace lathe::test
