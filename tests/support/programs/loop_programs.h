#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/support/tensors/tensors.h"

/// Programs with loops, as text, and what they compute.
namespace lathe::test {

/// h = h0; then in T iterations h = h / 2 + x[t], y[t] = h; at the end last = h. `reversed` in the text of both
/// slices makes it start at the last row. `g` is a temporary of one iteration.
inline constexpr std::string_view recurrence = R"(program @recurrence, 4 regions
// no collectives: nothing comes from other processes
loop 0: "rnn" launches 1..2, T times  loc("rnn.cpp":9)

region 0 rows
  %1 neg "h0"  loc("rnn.cpp":8)
launch 0: kernel 0 @copy(h0, h) for n
  as "element-wise", work 1000, bytes 8*n
region 1 rows
  %2 add "g"  loc("rnn.cpp":10)
launch 1: kernel 1 @step(h, "x at t", g) for n
  as "element-wise", work 1000, flops 2*n, bytes 12*n
region 2 rows
  %3 neg "h"  loc("rnn.cpp":11)
launch 2: kernel 2 @both(g, h, "y at t") for n
  as "element-wise", work 1000, bytes 12*n
region 3 rows
  %4 neg "last"  loc("rnn.cpp":12)
launch 3: kernel 0 @copy(h, last) for n
  as "element-wise", work 1000, bytes 8*n

input h0: f32[n] in h0
input x: f32[T, n] in x
output y: f32[T, n] in y
output last: f32[n] in last
buffer h0: input f32[n]
buffer x: input f32[T*n]
buffer y: output f32[T*n]
buffer last: output f32[n]
buffer h: temporary f32[n]
buffer g: temporary f32[n]
buffer "x at t": slice f32[n] of x by loop 0, stride n
buffer "y at t": slice f32[n] of y by loop 0, stride n

// kernel 0
kernel @copy(x: read f32, y: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load x[i0] : f32
    store y[i0] = %0
  }
}

// kernel 1
kernel @step(h: read f32, x: read f32, g: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load h[i0] : f32
    %1 = mul %0, 0.5:f32 : f32
    %2 = load x[i0] : f32
    %3 = add %1, %2 : f32
    store g[i0] = %3
  }
}

// kernel 2
kernel @both(g: read f32, h: write f32, y: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load g[i0] : f32
    store h[i0] = %0
    store y[i0] = %0
  }
}
)";

/// In S iterations h = 0; then in T iterations h = h + x[s, t], y[s, t] = h; then total = total + h. In the outer
/// loop, h and the rows of a sequence are temporaries.
inline constexpr std::string_view nested_loops = R"(program @nested, 6 regions
// no collectives: nothing comes from other processes
loop 0: "sequences" launches 1..5, S times
loop 1: "steps" launches 3..4, T times

region 0 rows
  %1 neg
launch 0: kernel 0 @clear(total) for n
  as "clear", work 1
region 1 rows
  %2 neg
launch 1: kernel 1 @copy("x at s", row) for T*n
  as "copy", work 1
region 2 rows
  %3 neg
launch 2: kernel 0 @clear(h) for n
  as "clear", work 1
region 3 rows
  %4 add
launch 3: kernel 2 @add(h, "row at t") for n
  as "element-wise", work 1
region 4 rows
  %5 neg
launch 4: kernel 1 @copy(h, "y at s, t") for n
  as "copy", work 1
region 5 rows
  %6 add
launch 5: kernel 2 @add(total, h) for n
  as "element-wise", work 1

input x: f32[S, T, n] in x
output y: f32[S, T, n] in y
output total: f32[n] in total
buffer x: input f32[S*T*n]
buffer y: output f32[S*T*n]
buffer total: output f32[n]
buffer h: temporary f32[n]
buffer row: temporary f32[T*n]
buffer "x at s": slice f32[T*n] of x by loop 0, stride T*n
buffer "y at s": slice f32[T*n] of y by loop 0, stride T*n
buffer "row at t": slice f32[n] of row by loop 1, stride n
buffer "y at s, t": slice f32[n] of "y at s" by loop 1, stride n

// kernel 0
kernel @clear(x: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    store x[i0] = 0:f32
  }
}

// kernel 1
kernel @copy(x: read f32, y: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load x[i0] : f32
    store y[i0] = %0
  }
}

// kernel 2
kernel @add(h: readwrite f32, x: read f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load h[i0] : f32
    %1 = load x[i0] : f32
    %2 = add %0, %1 : f32
    store h[i0] = %2
  }
}
)";

/// Returns the text with every `from` replaced.
inline std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  for (auto at = result.find(from); at != std::string::npos; at = result.find(from, at + to.size()))
    result.replace(at, from.size(), to);
  return result;
}

/// The program that starts at the last row.
inline std::string reversed_recurrence() { return with(recurrence, ", stride n\n", ", stride n, reversed\n"); }

/// Returns numbers whose sums are exact in f32.
inline HostTensor small_numbers(std::vector<std::int64_t> sizes) {
  HostTensor made(f32, std::move(sizes));
  for (std::int64_t i = 0; i < made.numel(); ++i) made.set(i, static_cast<double>(i * 7 % 31) - 15);
  return made;
}

inline Tensors recurrence_arguments(std::int64_t steps, std::int64_t n) {
  return {{"h0", small_numbers({n})}, {"x", small_numbers({steps, n})}};
}

/// Returns y and last.
inline Tensors recurrence_results(const Tensors& arguments, bool reversed = false) {
  const HostTensor &h0 = arguments.at("h0"), &x = arguments.at("x");
  const std::int64_t steps = x.shape()[0], n = x.shape()[1];
  HostTensor y(f32, {steps, n}), last(f32, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    float h = static_cast<float>(h0.get(i));
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t at = (reversed ? steps - 1 - t : t) * n + i;
      h = h * 0.5F + static_cast<float>(x.get(at));
      y.set(at, static_cast<double>(h));
    }
    last.set(i, static_cast<double>(h));
  }
  return {{"y", y}, {"last", last}};
}

/// Returns y and total of the nested loops for x[S, T, n].
inline Tensors nested_results(const HostTensor& x) {
  const std::int64_t rows = x.shape()[0], steps = x.shape()[1], n = x.shape()[2];
  HostTensor y(f32, x.shape()), total(f32, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    double all = 0;
    for (std::int64_t s = 0; s < rows; ++s) {
      double h = 0;
      for (std::int64_t t = 0; t < steps; ++t) y.set((s * steps + t) * n + i, h += x.get((s * steps + t) * n + i));
      all += h;
    }
    total.set(i, all);
  }
  return {{"y", y}, {"total", total}};
}

}  // namespace lathe::test
