#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "tests/support/graphs/round_trip.h"

/// The text form of kernels: print, parse, print.
using namespace lathe;
using namespace lathe::kernel;

namespace {

/// One operation of each intrinsic and region, in text that parses and need not verify.
constexpr std::string_view every_intrinsic =
    R"(kernel @every(a: read bf16, x: read f32, s: write f32, k: readwrite i32, u: readwrite f32; n, m) {
  map m0 = a[0] by 64 of n, 128 of m by n
  map m1 = a[64] by 64 of n, 1 of m by n, 8 of 12 by 64
  kernel @row(x: read f32, s: write f32; n) {
    %0 = load x[n] : f32
    store s[n] = %0
  }
  grid_clear s count n
  run_phase 0(read awaited x, write awaited s; m)
  grid_prefetch a[64] count 1024
  grid_prefetch_rows a[64] count n rows 12 every m most 4096
  grid_barrier
  run_phase 0(read x, write s; 8) checks after 3
  alloc t: bf16[16384] @shared
  %0 = load x[n] : f32
  %1 = load x[n by m] : f32x16
  %2 = load a[n] align 16 : bf16x32
  %3 = load x[m] : f32x4
  var v0: f32x64 = 0:f32x64
  var v1: f32x8 = -1:f32x8
  %4 = fast_exp %1 : f32x16
  %5 = fast_div %1, %4 : f32x16
  %6 = dot_pairs %2, %2, %5 : f32x16
  %7 = split_bf16.2 %1, %6 : bf16x32
  tile_mma s[0 by 64] = a[n by m], a[0 by 32], 16 x 32 x n
  tile_mma s[n by 64] += a[n by 32], a[0 by 64], 32 x 32 x 96 as split bf16, prefetch 12 lines from m
  for i0 in 0..256 step 1 @thread.x {
    %8 = from_lane %0, i0 : f32
    %9 = get v1 : f32x8
    %10 = mma 16 rows of t[0 by 24], 16 rows of t[i0 by n]^T, %9 : f32x8
    async_copy t[0] = a[i0]
    async_copy t[8] = a[n] count m
    commit_copies
    wait_copies 1
    pipeline of 4 for 128 threads, 2 blocks a multiprocessor {
      for i1 in 0..n step 1 @serial {
        %11 = lt i1, n : bool
        %12 = from_consumers %11 : bool
        stage i2 produce {
          copy_box t[0] = m0[i1, 0]
          copy_box t[4096] = m1[0, i2, 8]
        } consume {
          wgmma v0 = t[0], t[4096]
          wgmma v0 += t[i2]^T, t[4096]^T depth 48
          turn {
            wgmma v0 += %2, t[0]
            commit_sums
          }
          wait_sums v1 leaving 2
          wait_sums v0, v1 leaving 1 ended
        }
        wait_sums v0, v1
        hand_over i3 to 128 threads give {
          store t[i3] = 1:bf16
        } finish {
          wait_block_turn k[i3] at n
          store s[i3] = 1:f32
          add_in_turn u[n] += %3
          pass_block_turn k[i3]
        }
        hand_over i4 of all to 128 threads of 40 registers give {
        } finish {
        }
        %13 = fast_exp2 %1 : f32x16
      }
    }
    pipeline of 2 for 128 threads {
    }
  }
}
)";

}  // namespace

TEST_CASE("kernel text: every intrinsic and region parses") {
  CHECK(print(parse_kernel(every_intrinsic)) == every_intrinsic);
  for (const IntrinsicFamily* family : intrinsic_families()) {
    for (const IntrinsicRecord* record : family->operations) {
      INFO(record->name);
      CHECK(every_intrinsic.find(" " + std::string(record->name)) != std::string_view::npos);
    }
    for (const IntrinsicRegionRecord* record : family->regions) {
      INFO(record->name);
      CHECK(every_intrinsic.find(" " + std::string(record->name) + " ") != std::string_view::npos);
    }
  }
}

TEST_CASE("kernel text: every scalar operation, cast and reduction") {
  for (const ScalarOpTraits& op : all_scalar_ops())
    for (const DType dtype : {f64, f32, i64, i32, boolean}) {
      if (op.op == ScalarOp::cast || !is_defined(op.op, dtype)) continue;
      Builder b("k");
      const Buffer x = b.buffer("x", dtype, Access::read), c = b.buffer("c", boolean, Access::read);
      const Buffer y = b.buffer("y", result_dtype(op.op, dtype), Access::write);
      std::vector<Value> args;
      for (int i = 0; i < op.arity; ++i)
        args.push_back(b.load(op.op == ScalarOp::select && i == 0 ? c : x, b.dim("n") + i, 8));
      b.store(y, 0, b.apply(op.op, args));
      test::round_trip(b.finish());
    }
  const DType dtypes[] = {f64, f32, bf16, f16, i64, i32, i8, u8, boolean};
  for (const DType from : dtypes)
    for (const DType to : dtypes) {
      Builder b("k");
      const Buffer x = b.buffer("x", from, Access::read), y = b.buffer("y", to, Access::write);
      b.store(y, 0, b.cast(b.load(x, 0, 64), to));
      test::round_trip(b.finish());
    }
  for (const ScalarOp op :
       {ScalarOp::add, ScalarOp::mul, ScalarOp::min, ScalarOp::max, ScalarOp::logical_and, ScalarOp::logical_or}) {
    Builder b("k");
    const DType dtype = op == ScalarOp::logical_and || op == ScalarOp::logical_or ? boolean : i32;
    const Buffer x = b.buffer("x", dtype, Access::read), y = b.buffer("y", dtype, Access::write);
    b.store(y, 0, b.reduce(op, b.load(x, 0, 16)));
    test::round_trip(b.finish());
  }
}

TEST_CASE("kernel text: constants keep every bit") {
  const auto keeps = [](DType dtype, double value, std::int64_t integer, int lanes) {
    Builder b("k");
    const Buffer y = b.buffer("y", dtype, Access::write);
    b.store(y, 0, is_float(dtype) ? b.constant(dtype, value, lanes) : b.constant_int(dtype, integer, lanes));
    const Kernel kernel = b.finish(), parsed = test::round_trip(kernel);
    const auto constant = [](const Kernel& k) {
      return k.values[static_cast<std::size_t>(std::get<Store>(k.body[0].node).value)];
    };
    INFO(print(kernel));
    CHECK(constant(parsed).type == constant(kernel).type);
    CHECK(constant(parsed).integer == constant(kernel).integer);
    CHECK((std::isnan(value) || constant(parsed).real == constant(kernel).real));
    CHECK(std::signbit(constant(parsed).real) == std::signbit(constant(kernel).real));
  };
  using F64 = std::numeric_limits<double>;
  const double reals[] = {0.0,
                          -0.0,
                          1,
                          -1,
                          0.1,
                          1e30,
                          -2.5e-10,
                          0x1p-149,
                          65504,
                          F64::max(),
                          F64::denorm_min(),
                          F64::min(),
                          F64::infinity(),
                          -F64::infinity(),
                          F64::quiet_NaN(),
                          -F64::quiet_NaN()};
  for (const DType dtype : {f64, f32, bf16, f16})
    for (const double real : reals) keeps(dtype, real, 0, real == 1 ? 16 : 1);
  for (const DType dtype : {i64, i32, i8, u8}) {
    const auto [lowest, highest] = integer_limits(dtype);
    for (const std::int64_t integer : {lowest, highest, std::int64_t{0}, std::int64_t{7}})
      keeps(dtype, 0, integer, 2);
    keeps(dtype, 0, lowest, 1), keeps(dtype, 0, highest, 1);
  }
  for (const int bit : {0, 1}) keeps(boolean, 0, bit, 4), keeps(boolean, 0, bit, 1);
}

TEST_CASE("kernel text: names of any form") {
  Builder b("two words");
  b.note("%1 \"odd\"\nname // note"), b.note("");
  const Buffer x = b.buffer("layer.0 \"x\"", f32, Access::read), y = b.buffer("for", f32, Access::write, false);
  const Buffer again = b.buffer("for", f32, Access::read, false), dotted = b.buffer("end.", f32, Access::read_write);
  const Value n = b.dim("i0"), odd = b.dim("2*n"), by = b.dim("by"), inf = b.dim("inf"), last = b.dim("a.");
  b.for_loop(n, last, 1, [&](Value i) {
    b.for_loop(i, odd, 1, [&](Value j) {
      const Value at = j + inf;
      b.store(y, at, b.load(x, by), {}, 4);
      b.store(dotted, 0, b.load_strided(again, by, by, 4));
    });
  });
  const Kernel kernel = test::round_trip(b.finish());
  CHECK(kernel.name == "two words");
  CHECK(kernel.notes == std::vector<std::string>{"%1 \"odd\"\nname // note", ""});
  CHECK(kernel.dims == std::vector<std::string>{"i0", "2*n", "by", "inf", "a."});
  CHECK(
      print(kernel) ==
      R"(kernel @"two words"("layer.0 \"x\"": read f32, for: write f32 aliased, for_2: read f32 aliased, "end.": readwrite f32; i0, "2*n", by, inf, "a.") {
  note "%1 \"odd\"\nname // note"
  note ""
  for i1 in i0.."a." step 1 @serial {
    for i2 in i1.."2*n" step 1 @serial {
      %0 = add i2, inf : i64
      %1 = load "layer.0 \"x\""[by] : f32
      store for[%0] = %1 align 4
      %2 = load for_2[by by by] : f32x4
      store "end."[0] = %2
    }
  }
}
)");
}

TEST_CASE("kernel text: a text written by hand is verified and interpreted") {
  const Kernel kernel = parse_kernel(R"(
    // Scales by 2, in vectors of 4.
    kernel @scale(in: read f32, out: write f32; count) {
      for first in 0..count step 4 @parallel {
        %lane = ramp first, 1 : i64x4       // names may be words
        %end = broadcast count : i64x4
        %mask = lt %lane, %end : boolx4
        %x = load in[first] mask %mask : f32x4
        %y = mul %x, 2.0:f32x4 : f32x4
        store out[first] = %y mask %mask
      }
    })");
  verify(kernel);
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, y(6);
  const BoundBuffer bound[] = {{x.data(), 6}, {y.data(), 6}};
  const std::int64_t dims[] = {6};
  CHECK(interpret(kernel, bound, dims) == 0);
  CHECK(y == std::vector<float>{2, 4, 6, 8, 10, 12});
  CHECK(print(parse_kernel(print(kernel))) == print(kernel));
}

TEST_CASE("kernel text: several kernels, and names that end with their block") {
  const std::vector<Kernel> kernels = parse_kernels(R"(// two
kernel @a(x: write f32) {
  for i in 0..4 step 1 @serial {
    alloc t: f32[4] @stack
    var v: f32 = 1:f32
    %0 = get v : f32
    store t[i] = %0
  }
  for i in 0..4 step 1 @serial {
    alloc t: f32[4] @register
    var v: f32 = 2:f32
    %0 = get v : f32
    store t[i] = %0
  }
}
// nothing in this one
kernel @b() {
})");
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].buffers.size() == 3);
  CHECK(kernels[0].vars.size() == 2);
  for (const Kernel& kernel : kernels) test::round_trip(kernel);
  CHECK(print(kernels[1]) == "kernel @b() {\n}\n");
  CHECK(parse_kernels(" // nothing").empty());
}
