#include "runtime/host/peak.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#include "ir/support/error.h"
#include "runtime/host/arena.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/peak_kernels.h"
#include "runtime/host/seconds.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;

/// Uses a result, so that no probe is optimized away.
void keep(float value) { asm volatile("" : : "x"(value) : "memory"); }

/// Makes all threads of a probe start a burst at the same time.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}
  void wait() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      round_.fetch_add(1);
      return;
    }
    while (round_.load() == round) std::this_thread::yield();
  }

 private:
  int threads_;
  std::atomic<int> arrived_ = 0, round_ = 0;
};

/// Runs burst(thread) on each thread. Returns the duration of each burst in seconds, from its start until the slowest
/// thread has finished.
std::vector<double> time_bursts(int threads, int bursts, const std::function<void(int)>& burst) {
  SpinBarrier barrier(threads);
  std::vector<double> times;
  const auto loop = [&](int thread) {
    for (int i = 0; i < bursts; ++i) {
      barrier.wait();
      const auto start = Clock::now();
      burst(thread);
      barrier.wait();
      if (thread == 0) times.push_back(seconds_since(start));
    }
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(loop, thread);
  loop(0);
  return times;
}

Rate rate_of(std::vector<double> times, double work) {
  std::ranges::sort(times);
  return {.best = work / times.front(), .median = work / times[times.size() / 2]};
}

void check_threads(int threads) {
  if (threads < 1 || threads > 1024) throw UserError("a probe runs on 1 to 1024 threads", "thread_count");
}

/// Returns the number of bursts of `burst_seconds` that fill `seconds`.
int burst_count(double seconds, double burst_seconds) {
  return static_cast<int>(std::clamp(seconds / std::max(burst_seconds, 1e-6), 3.0, 1000.0));
}

/// Pins the calling thread to its first or last allowed CPU during its lifetime.
class OnCpu {
 public:
  explicit OnCpu(bool last) {
    if (::sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    int at = last ? CPU_SETSIZE - 1 : 0;
    while (at >= 0 && at < CPU_SETSIZE && !CPU_ISSET(at, &before_)) at += last ? -1 : 1;
    CPU_SET(at, &one);
    pinned_ = ::sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  ~OnCpu() {
    if (pinned_) ::sched_setaffinity(0, sizeof(before_), &before_);
  }
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

 private:
  cpu_set_t before_{};
  bool pinned_ = false;
};

/// A thread's range [begin, end) of `count` floats, in multiples of 64.
struct Part {
  std::int64_t begin, end;
};
Part part_of(std::int64_t count, int thread, int threads) {
  const std::int64_t lines = count / 64;
  return {lines * thread / threads * 64, lines * (thread + 1) / threads * 64};
}

}  // namespace

VectorUnit widest_vector_unit() { return fma_probe().unit; }

Rate measure_fma_peak(int threads, double seconds) {
  check_threads(threads);
  const FmaProbe probe = fma_probe();
  constexpr double burst_seconds = 0.005;
  // The warm-up raises the clock frequency and determines the number of rounds per burst.
  std::int64_t rounds = 1000;
  const auto start = Clock::now();
  for (double last = 0; last < burst_seconds / 2 || seconds_since(start) < seconds;) {
    const auto burst = Clock::now();
    keep(probe.run(rounds));
    last = seconds_since(burst);
    if (last < burst_seconds / 2) rounds *= 2;
  }
  const auto times = time_bursts(threads, burst_count(seconds, burst_seconds), [&](int) { keep(probe.run(rounds)); });
  return rate_of(times, static_cast<double>(rounds) * static_cast<double>(probe.flops_per_round) * threads);
}

Rate measure_read_bandwidth(int threads, std::int64_t bytes, double seconds) {
  check_threads(threads);
  const std::int64_t count = std::max<std::int64_t>(bytes / 4 / 64, threads) * 64;
  const Arena arena(static_cast<std::size_t>(count) * 4);
  auto* const data = reinterpret_cast<float*>(arena.data());
  std::fill_n(data, count, 1.0f);
  const auto burst = [&](int thread) {
    const Part part = part_of(count, thread, threads);
    keep(read_sum(data + part.begin, part.end - part.begin));
  };
  const double first = time_bursts(threads, 1, burst).front();
  return rate_of(time_bursts(threads, burst_count(seconds, first), burst), static_cast<double>(count) * 4);
}

double measure_core_round_trip(double seconds) {
  if (usable_cpus() < 2) return 0;
  constexpr std::int64_t trips = 1000;
  alignas(128) std::atomic<std::int64_t> ball = 0;
  // Thread 0 waits for even numbers, thread 1 for odd ones.
  const auto burst = [&](int thread) {
    const OnCpu pinned(thread == 1);
    for (std::int64_t i = 0; i < trips; ++i) {
      while (ball.load(std::memory_order_acquire) % 2 != thread) {
      }
      ball.store(ball.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
  };
  return std::ranges::min(time_bursts(2, burst_count(seconds, 2e-4), burst)) / trips;
}

std::int64_t bandwidth_probe_bytes() {
  const HostCpu info = host_cpu();
  std::int64_t largest = 0;
  for (const HostCache& cache : info.caches) largest = std::max(largest, cache.bytes);
  const std::int64_t wanted = std::max<std::int64_t>(largest * 4, std::int64_t{128} << 20);
  const std::int64_t available = memory_info().available;
  return available > 0 ? std::min(wanted, available / 4) : wanted;
}

}  // namespace lathe
