#include "models/text/dataset/epoch_order.h"

#include <numeric>
#include <utility>

#include "ir/support/error.h"
#include "ir/support/numbers/philox.h"

namespace lathe {

namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

std::vector<std::uint32_t> shuffled(std::int64_t n, std::uint64_t seed, std::uint64_t stream) {
  LATHE_ASSERT(n >= 0 && n <= UINT32_MAX);
  std::vector<std::uint32_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    const PhiloxWords words = philox({low(i), high(i), low(stream), high(stream)}, {low(seed), high(seed)});
    const std::uint64_t draw = std::uint64_t{words[0]} << 32 | words[1];
    std::swap(order[i - 1], order[draw % i]);
  }
  return order;
}

std::uint32_t EpochOrder::at(std::int64_t position) const {
  if (const std::int64_t epoch = position / n_; epoch != epoch_) {
    order_ = shuffled(n_, seed_, static_cast<std::uint64_t>(epoch));
    epoch_ = epoch;
  }
  return order_[static_cast<std::size_t>(position % n_)];
}

}  // namespace lathe
