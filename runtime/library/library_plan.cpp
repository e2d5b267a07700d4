#include "runtime/library/library_plan.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>

namespace lathe {

std::vector<int> LibraryPlan::block_order() const {
  std::vector<int> order(states.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) {
    const int bytes = static_cast<int>(size_in_bytes(states[i].dtype));
    return std::tuple(!states[i].shape.numel().value(), -bytes, std::string_view(states[i].name));
  });
  return order;
}

std::int64_t LibraryPlan::file_bytes() const {
  std::int64_t bytes = 0;
  for (const LibrarySlot& state : states)
    bytes += state.shape.numel().value().value_or(0) * static_cast<std::int64_t>(size_in_bytes(state.dtype));
  return bytes;
}

}  // namespace lathe
