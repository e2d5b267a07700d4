#include <catch2/catch.hpp>
#include <numeric>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/split_bf16.h"
#include "tests/support/graphs/round_trip.h"

using namespace lathe;
using namespace lathe::kernel;

namespace {

std::int64_t run(const Kernel& kernel, std::vector<std::vector<float>*> buffers, std::vector<std::int64_t> dims = {},
                 const RunOptions& options = {}) {
  std::vector<BoundBuffer> bound;
  for (auto* b : buffers) bound.push_back({b->data(), static_cast<std::int64_t>(b->size())});
  return interpret(kernel, bound, dims, options);
}

/// Reverses each block of `threads` floats through shared memory.
Kernel reverse_blocks(bool with_barrier, int threads = 8) {
  Builder b("reverse");
  Buffer x = b.buffer("x", f32, Access::read_write);
  Value blocks = b.dim("blocks");
  b.for_loop(
      0, blocks, 1,
      [&](Value block) {
        Buffer tile = b.alloc(f32, threads, Space::shared, "tile");
        b.for_loop(
            0, threads, 1,
            [&](Value t) {
              b.store(tile, t, b.load(x, block * threads + t));
              if (with_barrier) b.barrier();
              b.store(x, block * threads + t, b.load(tile, (threads - 1) - t));
            },
            LoopKind::thread_x);
      },
      LoopKind::block_x);
  return test::round_trip(b.finish());
}

}  // namespace

TEST_CASE("out-of-bounds accesses report kernel, buffer, index and size") {
  Builder b("over");
  Buffer x = b.buffer("x", f32, Access::read_write);
  Value n = b.dim("n");
  b.for_loop(0, n, 1, [&](Value i) { b.store(x, i + 1, b.load(x, i)); });
  const Kernel kernel = test::round_trip(b.finish());
  std::vector<float> data(4, 1.0f);
  CHECK(run(kernel, {&data}, {3}) == 0);
  CHECK_THROWS_WITH(run(kernel, {&data}, {4}),
                    Catch::Contains("kernel over: store to x[4], which has 4 elements  [out_of_bounds]"));
}

TEST_CASE("negative indices and masked lanes") {
  Builder b("edges");
  Buffer x = b.buffer("x", f32, Access::read_write);
  Value shift = b.dim("shift");
  Value lanes = b.ramp(b.index(0), 4) - shift;
  Value loaded = b.gather(x, lanes, b.constant_int(i64, 0, 4) <= lanes);
  b.store(x, 0, loaded);
  const Kernel kernel = test::round_trip(b.finish());
  std::vector<float> data{1, 2, 3, 4};
  run(kernel, {&data}, {2});
  CHECK(data == std::vector<float>{0, 0, 1, 2});
  CHECK_THROWS_WITH(run(kernel, {&data}, {-1}), Catch::Contains("x[4]"));
}

TEST_CASE("scratch must be written before it is read") {
  Builder b("poison");
  Buffer y = b.buffer("y", f32, Access::write);
  Buffer tmp = b.alloc(f32, 4, Space::stack, "tmp");
  b.store(tmp, 0, b.constant(f32, 1));
  b.store(y, 0, b.load(tmp, 0) + b.load(tmp, 1));
  const Kernel kernel = test::round_trip(b.finish());
  std::vector<float> data(1);
  CHECK_THROWS_WITH(run(kernel, {&data}), Catch::Contains("tmp[1], which was never written  [uninitialised]"));
}

TEST_CASE("ranges of the parallel loop and its extent") {
  Builder b("range");
  Buffer y = b.buffer("y", f32, Access::read_write);
  Value n = b.dim("n");
  b.parallel_for(1, n * 2, 3, [&](Value i) { b.store(y, i, b.load(y, i) + 1.0); });
  const Kernel kernel = test::round_trip(b.finish());
  const std::vector<std::int64_t> dims{6}, none_left{0};
  CHECK(extent(kernel, dims) == 4);
  CHECK(extent(kernel, none_left) == 0);
  std::vector<float> data(12);
  run(kernel, {&data}, {6}, {.begin = 1, .end = 3});
  CHECK(data == std::vector<float>{0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0});
  run(kernel, {&data}, {6});
  CHECK(data == std::vector<float>{0, 1, 0, 0, 2, 0, 0, 2, 0, 0, 1, 0});
}

TEST_CASE("bindings are checked, steps are limited") {
  Builder b("k");
  Buffer x = b.buffer("x", f32, Access::read_write);
  Value n = b.dim("n");
  b.for_loop(0, 1000000000, n, [&](Value) { b.store(x, 0, b.constant(f32, 1)); });
  const Kernel kernel = test::round_trip(b.finish());
  std::vector<float> data(1);
  CHECK_THROWS_WITH(run(kernel, {&data}), Catch::Contains("[binding]"));
  CHECK_THROWS_WITH(run(kernel, {}, {1}), Catch::Contains("[binding]"));
  CHECK_THROWS_WITH(run(kernel, {&data}, {1}, {.max_steps = 1000}), Catch::Contains("[max_steps]"));
  CHECK_THROWS_WITH(run(kernel, {&data}, {0}), Catch::Contains("[loop_step]"));
}

TEST_CASE("alignment assumptions are checked") {
  Builder b("aligned");
  Buffer x = b.buffer("x", f32, Access::read_write);
  Value n = b.dim("n");
  b.store(x, n, b.constant(f32, 1, 4), {}, 16);
  const Kernel kernel = test::round_trip(b.finish());
  alignas(16) float data[8] = {};
  const BoundBuffer bound{data, 8};
  const std::int64_t four[] = {4}, two[] = {2};
  CHECK(interpret(kernel, {&bound, 1}, four) == 0);
  CHECK_THROWS_WITH(interpret(kernel, {&bound, 1}, two), Catch::Contains("[alignment]"));
}

TEST_CASE("threads of a block run from barrier to barrier") {
  std::vector<float> data(24);
  std::iota(data.begin(), data.end(), 0.0f);
  run(reverse_blocks(true), {&data}, {3});
  for (int i = 0; i < 24; ++i) CHECK(data[static_cast<std::size_t>(i)] == static_cast<float>(i / 8 * 8 + 7 - i % 8));
}

TEST_CASE("detects a missing barrier") {
  std::vector<float> data(8);
  CHECK_THROWS_WITH(run(reverse_blocks(false), {&data}, {1}),
                    Catch::Contains("[uninitialised]") || Catch::Contains("[race]"));
  // Two threads write one element, or one reads an element that another one wrote earlier in the same phase.
  for (const bool write : {true, false}) {
    Builder b("racy");
    Buffer x = b.buffer("x", f32, Access::write);
    Buffer tile = b.alloc(f32, 8, Space::shared, "tile");
    b.for_loop(
        0, 8, 1,
        [&](Value t) {
          b.store(tile, write ? t / 2 : t, b.constant(f32, 1));
          if (!write) b.store(x, t, b.load(tile, max(t - 1, 0)));
        },
        LoopKind::thread_x);
    CHECK_THROWS_WITH(run(test::round_trip(b.finish()), {&data}), Catch::Contains("[race]"));
  }
}

TEST_CASE("a tree reduction over a 2-D block of threads") {
  Builder b("tree");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Buffer tile = b.alloc(f32, 64, Space::shared, "tile");
  b.for_loop(
      0, 4, 1,
      [&](Value row) {
        b.for_loop(
            0, 16, 1,
            [&](Value t) {
              Value at = row * 16 + t;
              Var own = b.var(b.load(x, at));
              b.store(tile, at, b.get(own));
              b.barrier();
              b.for_loop(0, 4, 1, [&](Value level) {
                Value stride = b.apply(ScalarOp::shift_right, {b.index(8), level});
                b.if_(t < stride, [&] {
                  b.set(own, b.get(own) + b.load(tile, at + stride));
                  b.store(tile, at, b.get(own));
                });
                b.barrier();
              });
              b.if_(equal(t, 0), [&] { b.store(y, row, b.load(tile, at)); });
            },
            LoopKind::thread_x);
      },
      LoopKind::thread_y);
  std::vector<float> in(64), out(4);
  std::iota(in.begin(), in.end(), 0.0f);
  run(test::round_trip(b.finish()), {&in, &out});
  CHECK(out == std::vector<float>{120, 376, 632, 888});
}

TEST_CASE("detects threads that reach a barrier a different number of times") {
  Builder b("divergent");
  b.buffer("x", f32, Access::read);
  b.for_loop(0, 4, 1, [&](Value t) { b.for_loop(0, t, 1, [&](Value) { b.barrier(); }); }, LoopKind::thread_x);
  std::vector<float> data(1);
  CHECK_THROWS_WITH(run(test::round_trip(b.finish()), {&data}), Catch::Contains("[divergent_barrier]"));
}

TEST_CASE("dot_pairs: the odd product first, each step rounded once, subnormals flushed to zero") {
  Builder b("dot");
  Buffer x = b.buffer("x", f32, Access::read_write);
  const auto pair = [&](double even, double odd) {
    return b.shuffle(b.constant(bf16, even), b.constant(bf16, odd), {0, 1});
  };
  const auto store = [&](int at, Value a, Value c, double sum) {
    b.store(x, at, dot_pairs(b, a, c, b.constant(f32, sum)));
  };
  store(0, pair(2, 3), pair(5, 7), 100);
  store(1, pair(1, -0x1p24), pair(1, 1), 0x1p24);  // -2^24 first: the 1 is not lost
  store(2, pair(-0x1p24, 1), pair(1, 1), 0x1p24);  // 1 first: it is rounded away
  store(3, pair(0x1p-130, 0), pair(0x1p20, 0), 0);
  store(4, pair(0, 0x1p-70), pair(0, 0x1p-70), 0);
  store(5, pair(0, 0), pair(0, 0), 0x1p-140);
  // 2^-126 - 2^-150 has 24 bits below the smallest normal number; as a subnormal it would be rounded up to that.
  store(6, pair(0, 0x1p-75), pair(0, -0x1p-75), 0x1p-126);
  const Kernel kernel = test::round_trip(b.finish());
  std::vector<float> results(7, -1.0f);
  run(kernel, {&results});
  CHECK(results == std::vector<float>{131, 1, 0, 0, 0, 0, 0});
}
