#include <catch2/catch.hpp>
#include <numeric>

#include "tests/codegen/harness.h"

using namespace lathe;
using namespace lathe::kernel;
using namespace lathe::testing;

TEST_CASE("variables, branches and loops with zero iterations") {
  Builder b("collatz");
  Buffer x = b.buffer("x", i64, Access::read), y = b.buffer("y", i64, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, 1, [&](Value i) {
    Var value = b.var(b.load(x, i)), steps = b.var(b.index(0));
    b.for_loop(0, 200, 1, [&](Value) {
      b.if_(b.get(value) > 1, [&] {
        Value v = b.get(value);
        b.if_(equal(v % 2, 0), [&] { b.set(value, v / 2); }, [&] { b.set(value, v * 3 + 1); });
        b.set(steps, b.get(steps) + 1);
      });
    });
    b.for_loop(n, 0, 1, [&](Value) { b.set(steps, b.index(-1)); });
    b.store(y, i, b.get(steps));
  });
  std::vector<std::int64_t> numbers(40);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Outcome result = compare(b.finish(), {Data::of(i64, numbers), Data(i64, 40)}, {40});
  CHECK(result.buffers[1].as<std::int64_t>()[27] == 111);
}

TEST_CASE("loops with bounds and steps known only at run time") {
  Builder b("bounds");
  Buffer y = b.buffer("y", i64, Access::read_write);
  Value lo = b.dim("lo"), hi = b.dim("hi"), step = b.dim("step");
  Value doubled = step * 2;
  b.parallel_for(lo, hi, doubled,
                 [&](Value i) { b.for_loop(lo, i + 1, step, [&](Value j) { b.store(y, i, b.load(y, i) + j); }); });
  const Kernel kernel = b.finish();
  for (const std::int64_t h : {0, 3, 17, 18, 19, 30}) compare(kernel, {Data(i64, 32)}, {3, h, 3});
}

TEST_CASE("set-up code before the parallel loop is visible to every range") {
  Builder b("setup");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Value n = b.dim("n");
  Buffer table = b.alloc(f32, 8);
  b.for_loop(0, 8, 1, [&](Value i) { b.store(table, i, b.load(x, i) * 10.0); });
  Var sum = b.var(b.constant(f32, 0));
  b.for_loop(0, 8, 1, [&](Value i) { b.set(sum, b.get(sum) + b.load(table, i)); });
  Value total = b.get(sum);
  b.parallel_for(0, n, 1, [&](Value i) { b.store(y, i, b.load(table, i % 8) + total); });
  compare(b.finish(), {samples(f32, 8, 9), Data(f32, 21)}, {21});
}

TEST_CASE("the first failed check is reported and the kernel continues") {
  Builder b("checks");
  Buffer x = b.buffer("x", i64, Access::read), y = b.buffer("y", i64, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, 1, [&](Value i) {
    Value v = b.load(x, i);
    b.check(v >= 0, 7);
    b.check(v < n, 8);
    b.store(y, i, v);
  });
  const Kernel kernel = b.finish();
  CHECK(compare(kernel, {Data::of<std::int64_t>(i64, {0, 1, 2, 3}), Data(i64, 4)}, {4}).status == 0);
  CHECK(compare(kernel, {Data::of<std::int64_t>(i64, {0, 9, -2, 3}), Data(i64, 4)}, {4}).status == 8);
  CHECK(compare(kernel, {Data::of<std::int64_t>(i64, {0, -9, 22, 3}), Data(i64, 4)}, {4}).status == 7);
}

TEST_CASE("vector operations: shuffles, ramps, reductions, fma") {
  Builder b("vectors");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Buffer sums = b.buffer("sums", f32, Access::write), k = b.buffer("k", i64, Access::write);
  Buffer flags = b.buffer("flags", boolean, Access::write), narrow = b.buffer("narrow", bf16, Access::write);
  Value v = b.load(x, 0, 8), w = b.load(x, 8, 8);
  Value interleaved = b.shuffle(v, w, {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15});
  b.store(y, 0, interleaved);
  b.store(y, 16, b.fma(b.concat(v, w), b.load(x, 3), interleaved));
  b.store(y, 32, b.slice(interleaved, 4, 4));
  b.store(y, 36, b.broadcast(b.extract(w, 5), 4));
  b.store(y, 40, b.shuffle(b.load(x, 1), b.load(x, 2), {1, 0, 0, 1}));
  int at = 0;
  for (const ScalarOp op : {ScalarOp::add, ScalarOp::mul, ScalarOp::min, ScalarOp::max}) {
    b.store(sums, at++, b.reduce(op, interleaved));
    b.store(sums, at++, b.reduce(op, b.slice(interleaved, 0, 2)));
  }
  Value ramp = b.ramp(b.index(3), 16, b.dim("stride"));
  b.store(k, 0, ramp);
  for (const ScalarOp op : {ScalarOp::add, ScalarOp::mul, ScalarOp::min, ScalarOp::max})
    b.store(k, at++ + 8, b.reduce(op, ramp));
  Value mask = interleaved < 0.5;
  b.store(flags, 0, mask);
  b.store(flags, 16, b.reduce(ScalarOp::logical_and, mask));
  b.store(flags, 17, b.reduce(ScalarOp::logical_or, mask));
  b.store(flags, 18, b.shuffle(mask, mask, {15, 3, 2, 1}));
  Value small = b.cast(interleaved, bf16);
  b.store(narrow, 0, b.select(mask, small, b.constant(bf16, 1.0)));
  b.store(narrow, 16, b.shuffle(small, small, {3, 1, 2, 0}));
  const Kernel kernel = b.finish();
  for (const std::uint64_t seed : {1, 2, 3})
    compare(kernel,
            {samples(f32, 16, seed), Data(f32, 44), Data(f32, 8), Data(i64, 24), Data(boolean, 22), Data(bf16, 20)},
            {-7});
}

TEST_CASE("Philox 4x32-10 gives the published numbers") {
  Builder b("philox");
  Buffer y = b.buffer("y", i64, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, 8, [&](Value i) {
    const auto u32 = [&](Value v) { return b.apply(ScalarOp::bit_and, {v, like(v, std::int64_t{0xffffffff})}); };
    const auto high = [&](Value v) { return b.apply(ScalarOp::shift_right, {v, like(v, 32)}); };
    const auto flip = [&](Value a, Value c) { return b.apply(ScalarOp::bit_xor, {a, c}); };
    Value zero = b.constant_int(i64, 0, 8);
    Value c[4] = {b.ramp(i, 8), zero, zero, zero};
    std::int64_t key[2] = {0, 0};
    for (int round = 0; round < 10; ++round) {
      Value first = c[0] * std::int64_t{0xD2511F53}, second = c[2] * std::int64_t{0xCD9E8D57};
      Value next[4] = {flip(flip(high(second), c[1]), like(zero, key[0])), u32(second),
                       flip(flip(high(first), c[3]), like(zero, key[1])), u32(first)};
      std::copy(next, next + 4, c);
      key[0] = (key[0] + 0x9E3779B9) & 0xffffffff;
      key[1] = (key[1] + 0xBB67AE85) & 0xffffffff;
    }
    for (int w = 0; w < 4; ++w) b.store_strided(y, i * 4 + w, 4, c[w]);
  });
  const Outcome result = compare(b.finish(), {Data(i64, 64)}, {16});
  const auto words = result.buffers[0].as<std::int64_t>();
  CHECK(std::vector<std::int64_t>(words.begin(), words.begin() + 4) ==
        std::vector<std::int64_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
}
