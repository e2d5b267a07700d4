#include "passes/gpu/reduction/long_reduction.h"

#include <algorithm>

namespace lathe::gpu {

namespace {

constexpr double many = 1'048'576;    // assumed length if known at run time only
constexpr double partial_bytes = 16;  // written and read, up to 8 bytes each

}  // namespace

int splits_of(const GpuInfo& gpu, const ReductionSizes& sizes, const LongReduction& r) {
  if (!r.results || *r.results == 0) return 1;
  const double vector_bytes = static_cast<double>(gpu.vectors.bits) / 8,
               thread_rate = 2 * vector_bytes / gpu.load_seconds;
  const double memory = gpu.bytes_per_second;
  const auto results = static_cast<double>(*r.results);
  const double each = (r.length ? static_cast<double>(*r.length) : many) * static_cast<double>(r.bytes);
  const auto seconds = [&](double threads) {
    return results * each / std::min(memory, results * threads * thread_rate);
  };
  int best = 1;
  double least = seconds(r.threads);
  for (int splits = 2; splits <= sizes.most_splits; splits *= 2) {
    if (splits * r.split_threads * vector_bytes > each) break;
    const double time = seconds(splits * r.split_threads) + r.kernels * gpu.launch_seconds +
                        splits * results * partial_bytes / memory;
    if (time < least) best = splits, least = time;
  }
  return best;
}

Splits cut(kernel::Builder& b, kernel::Value n, int most, int least, int unit) {
  if (most == 1) return {n, b.index(1)};
  const kernel::Value length = kernel::max(b.round_up(b.ceil_div(n, most), unit), least);
  return {length, b.ceil_div(n, length)};
}

}  // namespace lathe::gpu
