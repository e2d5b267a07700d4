#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda/device/mock_gpu.h"
#include "tests/cuda/mock_nccl/mock_nccl.h"

namespace lathe::test {

/// GPUs that are none, one for each of several ranks in threads of this process, and the mock of NCCL between them,
/// loaded as NCCL is. One at a time.
class MockRanks {
 public:
  explicit MockRanks(int ranks, MockDriver::Order order = MockDriver::Order::late);

  MockGpu& gpu(int rank) { return *gpus_.at(static_cast<std::size_t>(rank)); }
  /// Options for a rank to compile with. This must outlive what is compiled.
  CompileOptions options(const std::shared_ptr<Ranks>& ranks) { return gpu(ranks->rank()).options(ranks, nccl_); }
  const std::shared_ptr<const cuda::Nccl>& nccl() const { return nccl_; }
  MockNccl& control() { return *control_; }
  /// What is left on devices and in NCCL, and what was asked of NCCL that may not be; "" where nothing is.
  std::string faults();

 private:
  std::vector<std::unique_ptr<MockGpu>> gpus_;
  std::shared_ptr<const cuda::Nccl> nccl_;
  MockNccl* control_;
};

/// The file of the mock.
std::string mock_nccl_file();

}  // namespace lathe::test
