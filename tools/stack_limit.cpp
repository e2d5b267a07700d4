#include "tools/stack_limit.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include "ir/support/error.h"

namespace lathe::tools {

void check_stack_limit() {
  constexpr rlim_t least = 256 << 10;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= least) return;
  throw UserError(
      fmt::format("the stack is limited to {} KiB, and lathe needs {} KiB", limit.rlim_cur >> 10, least >> 10),
      "stack_limit", fmt::format("raise the limit: ulimit -s {}", least >> 10));
}

}  // namespace lathe::tools
