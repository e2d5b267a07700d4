#include "tests/gpu/gpu_device.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "runtime/cuda/platform.h"

namespace lathe::test {

std::optional<CompileOptions> gpu_options() {
  try {
    return CompileOptions{.target = Target::cuda(), .gpu = cuda::local_platform()};
  } catch (const UserError& error) {
    fmt::print("SKIP: {}\n", error.what());
    return std::nullopt;
  }
}

}  // namespace lathe::test
