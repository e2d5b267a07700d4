#include <catch2/catch.hpp>
#include <cmath>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/printer.h"
#include "tests/support/graphs/round_trip.h"

using namespace lathe;
using namespace lathe::kernel;

namespace {

/// A kernel with every statement and opcode once.
Kernel everything(const std::string& kernel_name, const std::string& prefix) {
  Builder b(kernel_name);
  b.note("%5 softmax mha.cpp:14");
  Buffer x = b.buffer(prefix + "x", f32, Access::read), y = b.buffer(prefix + "y", bf16, Access::write);
  Buffer z = b.buffer(prefix + "z", i64, Access::read_write, false);
  Value n = b.dim(prefix + "n"), m = b.dim(prefix + "m");
  Value half = n / 2;
  b.parallel_for(0, half, 4, [&](Value i) {
    Buffer tmp = b.alloc(f32, 32), again = b.alloc(f32, 16);
    Var sum = b.var({f32, 4}, b.constant(f32, -INFINITY));
    b.for_loop(i, m, 1, [&](Value j) {
      Value at = i * m + j;
      Value mask = b.tail_mask(m - j, 4);
      b.prefetch(x, at);
      Value v = b.load(x, at, 4, mask, 16);
      Value column = b.load_strided(x, at, m, 4), old = b.get(sum);
      b.set(sum, b.fma(v, column, old));
      b.store(tmp, 0, b.apply(ScalarOp::exp, {v}), {}, 64);
      b.store(again, j, b.load(tmp, 0));
    });
    Value last = b.get(sum);
    b.if_(
        b.reduce(ScalarOp::max, last) < 0.5, [&] { b.check(n < 10, 3); },
        [&] { b.store_strided(y, i, 2, b.cast(last, bf16)); });
    b.if_(n < 3, [&] {
      Value to = b.ramp(i, 4), from = b.ramp(b.index(0), 4, n);
      b.scatter(z, to, b.gather(z, from), b.constant(boolean, 1, 4));
    });
    b.store(y, i, b.cast(b.shuffle(last, last, {0, 7}), bf16));
    Value single = b.cast(b.extract(last, 1), bf16);
    b.store(y, i + 2, single);
  });
  return test::round_trip(b.finish());
}

}  // namespace

TEST_CASE("kernels print as text") {
  CHECK(print(everything("all", "")) == R"(kernel @all(x: read f32, y: write bf16, z: readwrite i64 aliased; n, m) {
  note "%5 softmax mha.cpp:14"
  %0 = div n, 2 : i64
  for i0 in 0..%0 step 4 @parallel {
    alloc tmp: f32[32] @stack
    alloc tmp_2: f32[16] @stack
    var v0: f32x4 = -inf:f32x4
    for i1 in i0..m step 1 @serial {
      %1 = mul i0, m : i64
      %2 = add %1, i1 : i64
      %3 = sub m, i1 : i64
      %4 = min %3, 4 : i64
      %5 = max %4, 0 : i64
      %6 = cast %5 : i32
      %7 = ramp 0:i32, 1:i32 : i32x4
      %8 = broadcast %6 : i32x4
      %9 = lt %7, %8 : boolx4
      prefetch x[%2]
      %10 = load x[%2] mask %9 align 16 : f32x4
      %11 = load x[%2 by m] : f32x4
      %12 = get v0 : f32x4
      %13 = fma %10, %11, %12 : f32x4
      set v0 = %13
      %14 = exp %10 : f32x4
      store tmp[0] = %14 align 64
      %15 = load tmp[0] : f32
      store tmp_2[i1] = %15
    }
    %16 = get v0 : f32x4
    %17 = reduce.max %16 : f32
    %18 = lt %17, 0.5:f32 : bool
    if %18 {
      %19 = lt n, 10 : bool
      check %19 else 3
    } else {
      %20 = cast %16 : bf16x4
      store y[i0 by 2] = %20
    }
    %21 = lt n, 3 : bool
    if %21 {
      %22 = ramp i0, 1 : i64x4
      %23 = ramp 0, n : i64x4
      %24 = gather z[%23] : i64x4
      scatter z[%22] = %24
    }
    %25 = shuffle %16, %16 {0, 7} : f32x2
    %26 = cast %25 : bf16x2
    store y[i0] = %26
    %27 = extract %16, 1 : f32
    %28 = cast %27 : bf16
    %29 = add i0, 2 : i64
    store y[%29] = %28
  }
}
)");
}

TEST_CASE("the canonical text omits only names and notes, and keeps everything else") {
  const Kernel a = everything("layer_0", "a_"), c = everything("layer_1", "c_");
  CHECK(print(a) != print(c));
  CHECK(canonical_text(a) == canonical_text(c));
  CHECK(canonical_text(a).substr(0, 74) ==
        "kernel @k(b0: read f32, b1: write bf16, b2: readwrite i64 aliased; d0, d1)");
  Builder b("other");
  b.buffer("x", f32, Access::read);
  CHECK(canonical_text(test::round_trip(b.finish())) == "kernel @k(b0: read f32) {\n}\n");
}

TEST_CASE("printing is deterministic") { CHECK(print(everything("k", "")) == print(everything("k", ""))); }

TEST_CASE("loop kinds and shared memory print") {
  Builder b("gpu");
  Buffer x = b.buffer("x", f32, Access::read_write);
  b.for_loop(
      0, 4, 1,
      [&](Value block) {
        Buffer tile = b.alloc(f32, 32, Space::shared, "tile");
        b.for_loop(
            0, 32, 1,
            [&](Value t) {
              b.store(tile, t, b.load(x, block * 32 + t));
              b.barrier();
              Value back = block * 32 + t;
              b.store(x, back, b.load(tile, 31 - t));
            },
            LoopKind::thread_x);
      },
      LoopKind::block_x);
  CHECK(print(test::round_trip(b.finish())) == R"(kernel @gpu(x: readwrite f32) {
  for i0 in 0..4 step 1 @block.x {
    alloc tile: f32[32] @shared
    for i1 in 0..32 step 1 @thread.x {
      %0 = mul i0, 32 : i64
      %1 = add %0, i1 : i64
      %2 = load x[%1] : f32
      store tile[i1] = %2
      barrier
      %3 = mul i0, 32 : i64
      %4 = add %3, i1 : i64
      %5 = sub 31, i1 : i64
      %6 = load tile[%5] : f32
      store x[%4] = %6
    }
  }
}
)");
}
