#include "codegen/cuda/ring_text.h"

#include <algorithm>

#include <fmt/core.h>

namespace lathe::cuda {

RingText ring_text(const kernel::Ring& ring, int threads, bool copied_by_all, bool tells) {
  constexpr int all = 512, kept = 24, most = 240;
  const int users = ring.users, groups = users / kernel::group_threads;
  const bool shares = !copied_by_all && groups > 1 && threads == users + kernel::group_threads;
  const bool all_fill = copied_by_all || shares;
  RingText text;
  text.before_fill = {fmt::format("Ring<{0}> ring = start_ring<{0}{1}>(ring_barriers, {2}, {3});", ring.stages,
                                  tells ? ", true" : "", copied_by_all ? threads - users : 1, users),
                      fmt::format("if (threadIdx.x {} {}) {{", all_fill ? ">=" : "==", users)};
  text.before_use = {fmt::format("}} else {}{{", all_fill ? "" : fmt::format("if (threadIdx.x < {}) ", users))};
  if (!shares) return text;
  text.before_fill.push_back(fmt::format("  give_registers<{}>();", kept));
  text.before_fill.push_back(fmt::format("  if (threadIdx.x != {}) return;", users));
  text.before_use.push_back(fmt::format("  take_registers<{}>();", std::min(most, (all - kept) / groups / 8 * 8)));
  return text;
}

}  // namespace lathe::cuda
