#include "tests/cuda/compile/local_nvrtc.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::test {

std::optional<cuda::Nvrtc> local_nvrtc() {
  try {
    return cuda::Nvrtc();
  } catch (const UserError& error) {
    fmt::print("SKIP: {}\n", error.what());
    return std::nullopt;
  }
}

}  // namespace lathe::test
