#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda/device/mock_gpu.h"
#include "tests/cuda/mock_nccl/mock_nccl.h"

namespace lathe::test {

/// Mock GPUs for several ranks in threads of this process, with the NCCL mock between them, loaded like NCCL. Only
/// one object may exist at a time.
class MockRanks {
 public:
  explicit MockRanks(int ranks, MockDriver::Order order = MockDriver::Order::late);

  MockGpu& gpu(int rank) { return *gpus_.at(static_cast<std::size_t>(rank)); }
  /// Returns options for a rank to compile with. This object must outlive the compiled programs.
  CompileOptions options(const std::shared_ptr<Ranks>& ranks) { return gpu(ranks->rank()).options(ranks, nccl_); }
  const std::shared_ptr<const cuda::Nccl>& nccl() const { return nccl_; }
  MockNccl& control() { return *control_; }
  /// Returns leaks on devices and in NCCL, and invalid NCCL calls; "" if there are none.
  std::string faults();

 private:
  std::vector<std::unique_ptr<MockGpu>> gpus_;
  std::shared_ptr<const cuda::Nccl> nccl_;
  MockNccl* control_;
};

/// Path of the mock library.
std::string mock_nccl_file();

}  // namespace lathe::test
