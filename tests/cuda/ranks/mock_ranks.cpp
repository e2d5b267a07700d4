#include "tests/cuda/ranks/mock_ranks.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ir/support/error.h"

namespace lathe::test {

std::string mock_nccl_file() { return LATHE_MOCK_NCCL "/libnccl.so.2"; }

MockRanks::MockRanks(int ranks, MockDriver::Order order)
    : nccl_(std::make_shared<const cuda::Nccl>(std::vector{mock_nccl_file()})) {
  void* const library = dlopen(mock_nccl_file().c_str(), RTLD_NOW | RTLD_NOLOAD);
  LATHE_ASSERT(library);
  control_ = reinterpret_cast<decltype(&mock_nccl)>(dlsym(library, "mock_nccl"))();
  dlclose(library);
  control_->reset();
  for (int r = 0; r < ranks; ++r) {
    gpus_.push_back(std::make_unique<MockGpu>());
    gpu(r).driver().order = order;
    gpu(r).driver().device_ids = {fmt::format("{:032x}", r)};
  }
}

std::string MockRanks::faults() {
  std::string found;
  for (const auto& gpu : gpus_)
    if (const auto alive = gpu->driver().alive(); alive > 0) found += fmt::format("{} alive on a device; ", alive);
  const std::lock_guard lock(control_->mutex);
  if (control_->alive > 0) found += fmt::format("{} communicators; ", control_->alive);
  return found + fmt::format("{}", fmt::join(control_->misuses, "; "));
}

}  // namespace lathe::test
