#pragma once

#include <string>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/text/parser.h"

namespace lathe::test {

/// out[r, c] = 4 x[r, c] + w[c] + the sum over c of 2 x[r, c], by four phases: blocks of 256 threads, of 128 with
/// barriers and shared memory, and of 8 x 2. Rows must be below 1000 (check 1 of the second phase, code 3 of the
/// kernel).
inline constexpr const char* phased_text =
    R"(kernel @phased(x: read f32, w: read f32, y: readwrite f32, sums: readwrite f32, z: readwrite f32, out: write f32; rows, cols, n) {
  kernel @scale(x: read f32, y: write f32; n) {
    for i0 in 0..n step 256 @block.x {
      for i1 in 0..256 step 1 @thread.x {
        %0 = add i0, i1 : i64
        %1 = lt %0, n : bool
        if %1 {
          %2 = load x[%0] : f32
          %3 = mul %2, 2:f32 : f32
          store y[%0] = %3
        }
      }
    }
  }
  kernel @row_sum(x: read f32, out: write f32; rows, cols) {
    for i0 in 0..rows step 1 @block.x {
      alloc partial: f32[128] @shared
      for i1 in 0..128 step 1 @thread.x {
        %0 = lt rows, 1000 : bool
        check %0 else 1
        var v0: f32 = 0:f32
        for i2 in i1..cols step 128 @serial {
          %1 = mul i0, cols : i64
          %2 = add %1, i2 : i64
          %3 = load x[%2] : f32
          %4 = get v0 : f32
          %5 = add %4, %3 : f32
          set v0 = %5
        }
        %6 = get v0 : f32
        store partial[i1] = %6
        barrier
        %7 = eq i1, 0 : bool
        if %7 {
          var v1: f32 = 0:f32
          for i3 in 0..128 step 1 @serial {
            %8 = load partial[i3] : f32
            %9 = get v1 : f32
            %10 = add %9, %8 : f32
            set v1 = %10
          }
          %11 = get v1 : f32
          store out[i0] = %11
        }
      }
    }
  }
  kernel @spread(sums: read f32, z: read f32, w: read f32, out: write f32; rows, cols) {
    for i0 in 0..rows step 2 @block.y {
      for i1 in 0..cols step 8 @block.x {
        for i2 in 0..2 step 1 @thread.y {
          for i3 in 0..8 step 1 @thread.x {
            %0 = add i0, i2 : i64
            %1 = add i1, i3 : i64
            %2 = lt %0, rows : bool
            %3 = lt %1, cols : bool
            %4 = logical_and %2, %3 : bool
            if %4 {
              %5 = mul %0, cols : i64
              %6 = add %5, %1 : i64
              %7 = load sums[%0] : f32
              %8 = load z[%6] : f32
              %9 = load w[%1] : f32
              %10 = add %8, %9 : f32
              %11 = add %10, %7 : f32
              store out[%6] = %11
            }
          }
        }
      }
    }
  }
  run_phase 0(read x, write y; n)
  grid_barrier
  run_phase 1(read y, write sums; rows, cols) checks after 2
  run_phase 0(read y, write z; n)
  grid_prefetch w[0] count 40
  grid_barrier
  run_phase 2(read sums, read z, read w, write out; rows, cols)
}
)";

inline kernel::Kernel phased_kernel() { return kernel::parse_kernel(phased_text, "phased"); }

/// Returns the text of the same kernel, whose phases await elements: its only barrier is after they are cleared.
inline std::string awaiting_text() {
  std::string text = phased_text;
  text.erase(text.find("  run_phase"));
  return text + R"(  grid_clear y count n
  grid_clear sums count rows
  grid_clear z count n
  grid_barrier
  run_phase 0(read x, write awaited y; n)
  run_phase 1(read awaited y, write awaited sums; rows, cols) checks after 2
  run_phase 0(read awaited y, write awaited z; n)
  grid_prefetch w[0] count 40
  grid_prefetch_rows z[0] count cols rows rows every cols most 4096
  run_phase 2(read awaited sums, read awaited z, read w, write out; rows, cols)
}
)";
}
inline kernel::Kernel awaiting_kernel() { return kernel::parse_kernel(awaiting_text(), "phased"); }

/// Calls run(buffers, dims) and returns `out`. Memory of the kernel starts as -1.
template <class Run>
std::vector<float> phased_result(std::int64_t rows, std::int64_t cols, const Run& run) {
  const std::int64_t n = rows * cols;
  const auto number = [](std::int64_t i, int salt) { return static_cast<float>((i * 7 + salt) % 23 - 11) / 8; };
  std::vector<float> x, w, y(static_cast<std::size_t>(n), -1), sums(static_cast<std::size_t>(rows), -1), z = y,
                                                                                                         out = y;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(number(i, 0));
  for (std::int64_t i = 0; i < cols; ++i) w.push_back(number(i, 5));
  std::vector<kernel::BoundBuffer> buffers;
  for (std::vector<float>* each : {&x, &w, &y, &sums, &z, &out}) buffers.push_back({each->data(), std::ssize(*each)});
  const std::vector<std::int64_t> dims{rows, cols, n};
  run(std::span<const kernel::BoundBuffer>(buffers), std::span<const std::int64_t>(dims));
  return out;
}

}  // namespace lathe::test
