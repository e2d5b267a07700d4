#include <algorithm>
#include <bit>

#include "passes/gpu/gemm/gemv/gemv.h"

namespace lathe::gpu {

namespace {

constexpr int most_at_once = 8;               // 16 bytes each
constexpr int most_elements = 32;             // in registers, in the compute type
constexpr int least_loads = 4;                // per thread, before more threads share a sum
constexpr int least_dot_threads = 8;          // that share a dot product
constexpr int multiprocessor_threads = 1024;  // if the sums are long enough

std::int64_t count_of(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

/// Returns the number of loads in flight per thread: all loads of the thread, or a divisor of their number.
int loads_at_once(int lanes, std::optional<std::int64_t> loads) {
  const int most = std::min(most_at_once, most_elements / lanes);
  if (!loads) return std::min(most, least_loads);
  for (int n = most; n > 1; --n)
    if (*loads % n == 0) return n;
  return static_cast<int>(std::clamp<std::int64_t>(*loads, 1, std::min(most, least_loads)));
}

}  // namespace

GemvPlan plan_dots(const GpuInfo& gpu, int lanes, std::optional<std::int64_t> columns,
                   std::optional<std::int64_t> k) {
  GemvPlan plan{.threads = block_threads, .lanes = lanes};
  const std::int64_t vectors = count_of(k.value_or(late_size), lanes), sums = columns.value_or(late_size),
                     enough = std::int64_t{estimated_multiprocessors} * multiprocessor_threads;
  const auto halved =
      static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(vectors, 2)))) / 2;
  plan.split = std::clamp(halved, least_dot_threads, gpu.warp_threads);
  while (plan.split * 2 <= plan.threads && sums * plan.split < enough && vectors >= 2 * least_loads * plan.split)
    plan.split *= 2;
  plan.at_once = loads_at_once(lanes, k ? std::optional(count_of(vectors, plan.split)) : std::nullopt);
  return plan;
}

GemvPlan plan_columns(const std::function<std::int64_t(int threads)>& shared_bytes, int lanes, int rows,
                      int sum_bytes, std::optional<std::int64_t> batch, std::optional<std::int64_t> columns,
                      std::optional<std::int64_t> k) {
  constexpr int wide = 8, narrowest = 2, least_threads = 128;  // threads along a row: 128 to 32 bytes
  GemvPlan plan{.threads = 2 * block_threads, .lanes = lanes};
  const auto blocks = [&](int side) {
    return batch.value_or(late_size) * count_of(columns.value_or(late_size), std::int64_t{side} * lanes);
  };
  // Few blocks leave multiprocessors idle; more than one for each would take turns.
  int side = wide;
  while (side > narrowest && blocks(side / 2) <= estimated_multiprocessors) side /= 2;
  const auto fits = [&] {
    return std::int64_t{plan.threads} * lanes * rows * sum_bytes <= shared_bytes(plan.threads) &&
           plan.threads / side <= k.value_or(late_size);
  };
  while (plan.threads > least_threads && !fits()) plan.threads /= 2;
  plan.split = plan.threads / side;
  plan.at_once = loads_at_once(lanes, k ? std::optional(count_of(*k, plan.split)) : std::nullopt);
  return plan;
}

}  // namespace lathe::gpu
