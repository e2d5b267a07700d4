#include "runtime/parameters/stored_tensor.h"

namespace lathe {

std::atomic<std::uint64_t>& writes_of_shared_memory() {
  static std::atomic<std::uint64_t> count = 0;
  return count;
}

}  // namespace lathe
