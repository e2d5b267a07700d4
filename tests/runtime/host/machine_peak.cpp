#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

#include "runtime/host/arena.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/peak.h"
#include "runtime/host/peak_kernels.h"
#include "tests/runtime/files/files_scratch.h"

using namespace lathe;
using namespace lathe::test;

TEST_CASE("peak: the probes give plausible rates") {
  const VectorUnit unit = widest_vector_unit();
  CHECK(unit.lanes >= 1);
  const Rate fma = measure_fma_peak(1, 0.01);
  // Between a slow emulation and 64 lanes x 2 units x 2 FLOPs at 10 GHz.
  CHECK(fma.best > 1e7);
  CHECK(fma.best < 2.6e12);
  CHECK(fma.median <= fma.best);
  CHECK(measure_fma_peak(2, 0.01).best > 1e7);
  const std::int64_t bytes = 8 << 20;
  const Rate rate = measure_read_bandwidth(2, bytes, 0.005);
  CHECK(rate.best > 1e7);
  CHECK(rate.best < 1e13);
  CHECK(rate.median <= rate.best);
  CHECK(bandwidth_probe_bytes() > 0);
  const double trip = measure_core_round_trip(0.005);
  CHECK((usable_cpus() < 2 ? trip == 0 : trip > 1e-9));
  CHECK(trip < 0.01);
  CHECK(failure_of([] { measure_fma_peak(0); }).label == "thread_count");
}

TEST_CASE("peak: the kernels compute correct results") {
  alignas(64) float data[128];
  for (int i = 0; i < 128; ++i) data[i] = static_cast<float>(i);
  CHECK(read_sum(data, 128) == 127 * 64);
  // x -> 0.999 x + 0.001 has the fixed point 1, to which every chain converges.
  const float value = fma_probe().run(100000);
  CHECK(value == Approx(12.0).epsilon(1e-3));
}

TEST_CASE("arena: aligned, zero, writable, movable") {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{100000}, (std::size_t{2} << 20) + 1, std::size_t{9} << 20}) {
    Arena arena(size);
    const std::size_t alignment = size >= (2u << 20) ? 2u << 20 : 4096;
    CHECK(reinterpret_cast<std::uintptr_t>(arena.data()) % alignment == 0);
    CHECK(arena.size() == size);
    CHECK(std::ranges::all_of(arena.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    std::ranges::fill(arena.bytes(), std::byte{7});
    Arena other(5);
    other = std::move(arena);
    CHECK(other.bytes().back() == std::byte{7});
    const Arena third(std::move(other));
    CHECK(third.size() == size);
    CHECK(other.size() == 0);  // NOLINT: the state of what was moved from is promised
  }
  CHECK(Arena(0).data() == nullptr);
}

TEST_CASE("arena: an excessive size is a user error, with the sizes") {
  for (const std::size_t size : {std::size_t{1} << 60, SIZE_MAX}) {
    const auto failure = failure_of([&] { const Arena arena(size); });
    CHECK(failure.label == "arena_memory");
    CHECK_THAT(failure.text, Catch::Contains(std::to_string(size)) && Catch::Contains("available"));
  }
}
