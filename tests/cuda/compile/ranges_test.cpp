#include "codegen/cuda/index/ranges.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/index/index_width.h"
#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/verify/structure_rules.h"
#include "tests/support/programs/first_threads.h"

/// Ranges of a kernel's integers, and which of them are computed in 32 bits.
using namespace lathe;
using namespace lathe::kernel;
using cuda::Indices;
using cuda::Range;

namespace {

constexpr std::int64_t two_31 = std::int64_t{1} << 31;

/// Returns a kernel of `blocks` blocks of one thread, which stores to y at the index that the body returns.
template <class Body>
Kernel one_store(Builder::Bound blocks, Builder& b, const Body& index) {
  const Buffer y = b.buffer("y", f32, Access::write);
  const auto thread = [&](Value i) {
    b.for_loop(0, 1, 1, [&](Value) { b.store(y, index(i), b.constant(f32, 1)); }, LoopKind::thread_x);
  };
  b.for_loop(0, blocks, 1, thread, LoopKind::block_x);
  return b.finish();
}

std::string text_of(std::int64_t blocks, const std::function<Value(Builder&, Value)>& index,
                    Indices indices = Indices::int32) {
  Builder b("k");
  const std::string text =
      cuda::emit(one_store(blocks, b, [&](Value i) { return index(b, i); }), gpu_info("sm_80"), indices);
  const auto at = text.find("y[");
  return text.substr(at, text.find(']', at) + 1 - at);
}

}  // namespace

TEST_CASE("the range of an operation contains all its results") {
  std::mt19937 random(3);
  const std::int64_t ends[] = {
      INT64_MIN,  INT64_MIN + 1, -two_31 - 1,           -two_31,       -7,       -2, -1, 0, 1, 2, 3, 8,
      two_31 - 1, two_31,        std::int64_t{1} << 40, INT64_MAX - 1, INT64_MAX};
  const auto any = [&] { return ends[random() % std::size(ends)]; };
  const auto inside = [&](const Range& r) {
    switch (random() % 4) {
      case 0: return r.lo;
      case 1: return r.hi;
      case 2: return std::clamp<std::int64_t>(static_cast<std::int64_t>(random() % 9) - 4, r.lo, r.hi);
      default: return std::clamp(any(), r.lo, r.hi);
    }
  };
  for (const ScalarOp op : {ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::div, ScalarOp::rem, ScalarOp::min,
                            ScalarOp::max, ScalarOp::neg, ScalarOp::abs, ScalarOp::sign, ScalarOp::bit_and,
                            ScalarOp::bit_or, ScalarOp::bit_xor, ScalarOp::shift_left, ScalarOp::shift_right})
    for (int n = 0; n < 3000; ++n) {
      std::vector<Range> ranges;
      std::vector<Scalar> args;
      for (int i = 0; i < arity(op); ++i) {
        const std::int64_t a = any(), b = any();
        ranges.push_back({std::min(a, b), std::max(a, b)});
        args.push_back({.integer = inside(ranges.back())});
      }
      const std::int64_t result = evaluate(op, i64, args).integer;
      const Range range = range_of(op, ranges);
      if (range.holds(result)) continue;
      CAPTURE(name(op), args[0].integer, args.back().integer, result, range.lo, range.hi);
      FAIL("beyond its range");
    }
}

TEST_CASE("ranges of index operations are tight") {
  using R = Range;
  const auto of = [](ScalarOp op, R a, R b) {
    const R args[] = {a, b};
    return range_of(op, args);
  };
  CHECK(of(ScalarOp::sub, R{0, 9}, R{0, 4}) == R{-4, 9});
  CHECK(of(ScalarOp::mul, R{-3, 5}, R{-7, 2}) == R{-35, 21});
  CHECK(of(ScalarOp::div, R{-9, 100}, R{3, 4}) == R{-3, 33});
  CHECK(of(ScalarOp::div, R{5, 100}, R{0, 4}) == R{0, 100});
  CHECK(of(ScalarOp::rem, R{0, INT64_MAX}, R{8, 8}) == R{0, 7});
  CHECK(of(ScalarOp::rem, R{-3, 100}, R{8, 8}) == R{-3, 7});
  CHECK(of(ScalarOp::rem, R{INT64_MIN, INT64_MAX}, R{INT64_MIN, INT64_MIN}) == R{-INT64_MAX, INT64_MAX});
  CHECK(of(ScalarOp::add, R{0, INT64_MAX}, R{1, 1}) == R{});
  CHECK(of(ScalarOp::bit_and, R{}, R{0, 63}) == R{0, 63});
}

TEST_CASE("indices use 32 bits up to the last index that fits") {
  const auto plus = [](std::int64_t n) { return [n](Builder&, Value i) { return i + n; }; };
  // The largest index below 2^31 and the smallest one from -2^31 on, and one beyond each.
  CHECK(text_of(1000, plus(two_31 - 1000)) == "y[i0 + 2147482648]");
  CHECK(text_of(1001, plus(two_31 - 1000)) == "y[add(i64(i0), 2147482648LL)]");
  CHECK(text_of(1000, plus(-two_31)) == "y[i0 + (-2147483647 - 1)]");
  CHECK(text_of(1000, plus(-two_31 - 1)) == "y[add(i64(i0), -2147483649LL)]");
  const auto times = [](std::int64_t n) { return [n](Builder&, Value i) { return i * n; }; };
  CHECK(text_of(65536, times(32768)) == "y[i0 * 32768]");
  CHECK(text_of(65537, times(32768)) == "y[mul(i64(i0), 32768LL)]");
}

TEST_CASE("a result that fits 32 bits is computed in 64 bits if its intermediate values do not fit") {
  const auto index = [](Builder&, Value i) { return i * 4096 / 100 % 7; };
  CHECK(text_of(1 << 19, index) == "y[((i0 * 4096) / 100) % 7]");
  CHECK(text_of(1 << 20, index) == "y[i32(mul(i64(i0), 4096LL) / 100LL) % 7]");
}

TEST_CASE("negative intermediate values of an index") {
  const auto window = [](Builder& b, Value i) { return kernel::max(i - 300, b.index(0)); };
  CHECK(text_of(1000, window) == "y[max(i0 + -300, 0)]");
  // A difference of two large numbers.
  const auto difference = [](Builder& b, Value i) { return b.index(-two_31) - i; };
  CHECK(text_of(2, difference) == "y[sub(-2147483648LL, i64(i0))]");
}

TEST_CASE("loop counters use 32 bits while their bounds fit") {
  const auto text = [](std::int64_t end, std::int64_t step) {
    Builder b("k");
    const Buffer y = b.buffer("y", f32, Access::write);
    const auto thread = [&](Value) { b.for_loop(0, end, step, [&](Value i) { b.store(y, i, b.constant(f32, 1)); }); };
    b.for_loop(0, 1, 1, [&](Value) { b.for_loop(0, 1, 1, thread, LoopKind::thread_x); }, LoopKind::block_x);
    const std::string all = cuda::emit(b.finish(), gpu_info("sm_80"));
    const auto at = all.find("for (");
    return all.substr(at, all.find(" {", at) - at);
  };
  CHECK(text(two_31 - 1, 1) == "for (i32 i2 = 0; i2 < 2147483647; ++i2)");
  CHECK(text(two_31, 1) == "for (i64 i2 = 0; i2 < 2147483648LL; ++i2)");
  CHECK(text(two_31 - 4, 4) == "for (i32 i2 = 0; i2 < 2147483644; i2 += 4)");
  CHECK(text(two_31 - 1, 4) == "for (i64 i2 = 0; i2 < 2147483647; i2 += 4)");
}

TEST_CASE("a loop with at most one iteration becomes an if") {
  const auto text = [](std::int64_t end, bool known) {
    Builder b("k");
    const Buffer y = b.buffer("y", f32, Access::write);
    const Value n = known ? b.index(end) : b.dim("n");
    const auto thread = [&](Value t) {
      b.for_loop(t * 4, n, 128, [&](Value i) { b.store(y, i, b.constant(f32, 1)); });
    };
    b.for_loop(0, 1, 1, [&](Value) { b.for_loop(0, 32, 1, thread, LoopKind::thread_x); }, LoopKind::block_x);
    return cuda::emit(b.finish(), gpu_info("sm_80"));
  };
  CHECK(text(128, true).find("if (const i32 i2 = v0; i2 < 128) {") != std::string::npos);
  CHECK(text(129, true).find("for (i32 i2 = v0; i2 < 129; i2 += 128) {") != std::string::npos);
  CHECK(text(0, false).find("for (i32 i2 = v0; i2 < i32(n); i2 += 128) {") != std::string::npos);
}

TEST_CASE("variables use 32 bits if all their values fit") {
  const auto text = [](bool grows) {
    Builder b("k");
    const Buffer y = b.buffer("y", f32, Access::write);
    const Value n = b.dim("n");
    const auto thread = [&](Value) {
      const Var turn = b.var(b.index(0));
      b.for_loop(0, n, 1, [&](Value) {
        b.store(y, b.get(turn), b.constant(f32, 1));
        b.set(turn, grows ? b.get(turn) + 1 : (b.get(turn) + 1) % 2);
      });
    };
    b.for_loop(0, 1, 1, [&](Value) { b.for_loop(0, 1, 1, thread, LoopKind::thread_x); }, LoopKind::block_x);
    return cuda::emit(b.finish(), gpu_info("sm_80"));
  };
  CHECK(text(false).find("i32 r0 = 0;") != std::string::npos);
  CHECK(text(true).find("i64 r0 = 0LL;") != std::string::npos);
}

TEST_CASE("unknown dims are assumed to fit 32 bits, and larger values are detected") {
  Builder b("k");
  const Value rows = b.dim("rows"), columns = b.dim("columns");
  const Kernel kernel = one_store(rows, b, [&](Value i) { return i / columns * 768 + i % columns; });
  CHECK(cuda::emit(kernel, gpu_info("sm_80")).find("y[(div(i0, i32(columns)) * 768) + rem(i0, i32(columns))]") !=
        std::string::npos);
  CHECK(cuda::emit(kernel, gpu_info("sm_80"), Indices::int64).find("div(i64(i0), columns)") != std::string::npos);
  const auto suffices = [&](std::int64_t r, std::int64_t c) {
    const std::int64_t dims[] = {r, c};
    return cuda::int32_suffices(kernel, gpu_info("sm_80"), dims);
  };
  CHECK(suffices(0, 0));
  CHECK(suffices(65536, 32));
  CHECK(suffices(two_31 / 768, 1));
  CHECK_FALSE(suffices(two_31 / 768 + 2, 1));
  CHECK(suffices(two_31 - 1, 1024));
  CHECK_FALSE(suffices(1, two_31));
  CHECK_FALSE(suffices(two_31, 1024));
  CHECK_FALSE(suffices(65536, -two_31 - 1));
}

TEST_CASE("the value of a salt does not affect the index width") {
  Builder b("k");
  const Value rows = b.dim("rows"), salt = b.dim("salt");
  const Kernel kernel = one_store(rows, b, [&](Value i) { return b.apply(ScalarOp::bit_xor, {i, salt}) % 64 + i; });
  for (const std::int64_t s : {std::int64_t{7}, 2654435769, -two_31 * 2}) {
    const std::int64_t dims[] = {65536, s};
    CHECK(cuda::int32_suffices(kernel, gpu_info("sm_80"), dims));
  }
  CHECK_THAT(cuda::emit(kernel, gpu_info("sm_80")), Catch::Contains("i64(i0) ^ salt"));
}

TEST_CASE("the index of an intrinsic region has the range of its record") {
  Builder b("k");
  const auto thread = [&](Value) { b.region(test::first_threads_record, {3}, {[&](Value) { b.barrier(); }}); };
  b.for_loop(0, 32, 1, thread, LoopKind::thread_x);
  const Kernel kernel = b.finish();
  const cuda::Ranges found = cuda::ranges(kernel, gpu_info("sm_80"), {});
  kernel::for_each_statement(kernel.body, [&](const Statement& s) {
    const IntrinsicRegion* region = region_of(s, test::first_threads_record);
    if (!region) return;
    CHECK(found.values[static_cast<std::size_t>(region->index)] == Range{0, 2});
    CHECK(found.counters[static_cast<std::size_t>(region->index)] == Range{0, 2});
  });
  CHECK(holds_region(kernel.body));
}
