#include "bench/memory_floor.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "ir/support/error.h"
#include "runtime/host/arena.h"
#include "runtime/host/seconds.h"

namespace lathe::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int most_arrays = 4;
struct Arrays {
  std::array<const float*, most_arrays> read = {};
  std::array<float*, most_arrays> write = {};
};

/// Vectors of 16 floats, the width of the widest registers; every count is a multiple of 64.
using Vector [[gnu::vector_size(64)]] = float;

/// Writes the sum of `reads` vectors at i to every output array, or adds it to `total` if there is none.
template <int reads, int writes, bool streaming>
void step(const Arrays& arrays, std::int64_t i, Vector& total) {
  Vector sum = {};
  for (int r = 0; r < reads; ++r)
    sum += *reinterpret_cast<const Vector*>(arrays.read[static_cast<std::size_t>(r)] + i);
  for (int w = 0; w < writes; ++w) {
    float* const to = arrays.write[static_cast<std::size_t>(w)] + i;
    if constexpr (streaming) {
      for (int part = 0; part < 4; ++part) _mm_stream_ps(to + 4 * part, reinterpret_cast<const __m128*>(&sum)[part]);
    } else {
      *reinterpret_cast<Vector*>(to) = sum;
    }
  }
  if constexpr (writes == 0) total += sum;
}

template <int reads, int writes, bool streaming>
float sweep(const Arrays& arrays, std::int64_t begin, std::int64_t end) {
  Vector totals[4] = {};
  for (std::int64_t i = begin; i < end; i += 64)
    for (int part = 0; part < 4; ++part) step<reads, writes, streaming>(arrays, i + 16 * part, totals[part]);
  return (totals[0] + totals[1] + totals[2] + totals[3])[0];
}

using Kernel = float (*)(const Arrays&, std::int64_t, std::int64_t);

template <bool streaming>
Kernel kernel_of(const Sweep& s) {
  if (s.reads == 0 && s.writes == 1) return sweep<0, 1, streaming>;
  if (s.reads == 1 && s.writes == 0) return sweep<1, 0, streaming>;
  if (s.reads == 1 && s.writes == 1) return sweep<1, 1, streaming>;
  if (s.reads == 2 && s.writes == 1) return sweep<2, 1, streaming>;
  if (s.reads == 3 && s.writes == 1) return sweep<3, 1, streaming>;
  if (s.reads == 4 && s.writes == 3) return sweep<4, 3, streaming>;
  throw InternalError("no such sweep");
}

double run_once(ThreadPool& threads, const std::vector<Sweep>& sweeps, float* memory, bool streaming) {
  const auto start = Clock::now();
  for (const Sweep& s : sweeps) {
    Arrays arrays;
    float* next = memory;
    const auto fresh = [&] { return std::exchange(next, next + s.count); };
    for (int r = 0; r < s.reads; ++r) arrays.read[static_cast<std::size_t>(r)] = fresh();
    for (int w = 0; w < s.writes; ++w)
      arrays.write[static_cast<std::size_t>(w)] = s.in_place ? memory + w * s.count : fresh();
    const Kernel kernel = streaming ? kernel_of<true>(s) : kernel_of<false>(s);
    const std::int64_t grain = std::max<std::int64_t>(s.count / threads.size() / 4 / 64 * 64, 8192);
    threads.run(s.count, grain, [&](std::int64_t begin, std::int64_t end) {
      const float kept = kernel(arrays, begin, end);
      asm volatile("" : : "x"(kept) : "memory");
    });
  }
  return seconds_since(start);
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double measure_floor(ThreadPool& threads, const std::vector<Sweep>& sweeps, int repeats) {
  std::int64_t floats = 64;
  std::vector<Sweep> rounded = sweeps;
  for (Sweep& s : rounded) {
    s.count = (s.count + 63) / 64 * 64;
    floats = std::max(floats, s.count * (s.reads + (s.in_place ? 0 : s.writes)));
  }
  const Arena arena(static_cast<std::size_t>(floats) * sizeof(float));
  auto* const memory = reinterpret_cast<float*>(arena.data());
  std::fill_n(memory, floats, 1.0f);
  double best = 1e30;
  for (const bool streaming : {false, true}) {
    std::vector<double> times;
    for (int i = 0; i < repeats + 1; ++i) {
      const double seconds = run_once(threads, rounded, memory, streaming);
      if (i > 0) times.push_back(seconds);
    }
    best = std::min(best, median(times));
  }
  return best;
}

}  // namespace lathe::bench
