#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "ir/kernel/intrinsics/gpu/mma.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/verifier.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/kernels/tile_product.h"

/// mma and asynchronous copies.
using namespace lathe;
using namespace lathe::kernel;
using test::tile_product;
using test::TileProduct;

namespace {

constexpr std::int64_t stride = 80;  // row stride of matrices in memory

float number(int i) { return static_cast<float>(i * 7 % 23 - 11) / 8; }

struct Run {
  std::vector<std::uint16_t> left, right;
  std::vector<float> sums;
};

Run run(const Kernel& kernel, const TileProduct& p, std::int64_t k, std::int64_t strides = stride) {
  Run r;
  const auto fill = [&](std::vector<std::uint16_t>& m, int salt) {
    for (int i = 0; i < 80 * stride; ++i)
      m.push_back(p.dtype == bf16 ? bf16_bits(number(i + salt)) : f16_bits(number(i + salt)));
  };
  fill(r.left, 0);
  fill(r.right, 5);
  r.sums.assign(static_cast<std::size_t>(p.left_rows * p.right_rows), -1);
  const auto bind = [](auto& v) { return BoundBuffer{v.data(), static_cast<std::int64_t>(v.size())}; };
  const BoundBuffer buffers[] = {bind(r.left), bind(r.right), bind(r.sums)};
  const std::int64_t dims[] = {k, strides, strides};
  interpret(kernel, buffers, dims);
  return r;
}

void fails(const TileProduct& p, const std::string& text, std::int64_t strides = stride) {
  CHECK_THROWS_WITH(run(tile_product(p), p, 32, strides), Catch::Contains(text));
}

}  // namespace

TEST_CASE("mma accumulates exact products in order, for both layouts of both operands, ragged k") {
  for (const DType dtype : {bf16, f16})
    for (const bool left : {false, true})
      for (const bool right : {false, true})
        for (const std::int64_t k : {0, 16, 41}) {
          const TileProduct p{dtype, 32, 64, left, right};
          const Run r = run(tile_product(p), p, k);
          for (int i = 0; i < 32; ++i)
            for (int j = 0; j < 64; ++j) {
              float sum = 0;
              for (int l = 0; l < static_cast<int>(k); ++l) {
                const int at_left = left ? l * 80 + i : i * 80 + l, at_right = right ? l * 80 + j : j * 80 + l;
                sum = std::fma(number(at_left), number(at_right + 5), sum);
              }
              REQUIRE(r.sums[static_cast<std::size_t>(i * 64 + j)] == sum);
            }
        }
}

TEST_CASE("the accumulators of the threads of a warp cover every element, once each") {
  for (const auto& [rows, columns] : {std::pair{16, 16}, {64, 32}, {16, 128}}) {
    std::vector<int> seen(static_cast<std::size_t>(rows * columns));
    for (int lane = 0; lane < warp_threads; ++lane)
      for (int i = 0; i < rows * columns / warp_threads; ++i) {
        const AccumulatorPosition at = accumulator_position(columns, lane, i);
        ++seen[static_cast<std::size_t>(at.row * columns + at.column)];
      }
    CHECK(seen == std::vector<int>(seen.size(), 1));
  }
}

TEST_CASE("detects a missing wait, a missing barrier and misaligned positions") {
  fails({.waits = false}, "whose copy was not waited for  [uninitialised]");
  fails({.barrier = false}, "[race]");
  fails({}, "[alignment]", stride + 1);
  fails({}, "[out_of_bounds]", 4096);
}

namespace {

/// A kernel of one warp; `body` gets 512 elements of zeroed shared memory, and as many of global memory.
Kernel warp(const std::function<void(Builder&, Buffer, Buffer, Value)>& body, int threads = 32, DType dtype = bf16) {
  Builder b("warp");
  const Buffer x = b.buffer("x", dtype, Access::read);
  const Buffer tile = b.alloc(dtype, 512, Space::shared, "tile");
  const auto thread = [&](Value t) {
    b.for_loop(t, 512, threads, [&](Value i) { b.store(tile, i, b.constant(dtype, 0)); });
    b.barrier();
    body(b, tile, x, t);
  };
  b.for_loop(0, threads, 1, thread, LoopKind::thread_x);
  return test::round_trip(b.finish());
}

Value multiply(Builder& b, Buffer tile, Builder::Bound first, int rows = 16, int lanes = 8) {
  const MmaOperand m{tile, first, 16, rows, false};
  return mma(b, m, m, b.constant(f32, 0, lanes));
}

void fails_to_run(const std::function<void(Builder&, Buffer, Buffer, Value)>& body, const std::string& label) {
  std::vector<std::uint16_t> x(512);
  const BoundBuffer buffers[] = {{x.data(), 512}};
  CHECK_THROWS_WITH(interpret(warp(body), buffers, {}), Catch::Contains("[" + label + "]"));
}

void is_refused(const std::function<Kernel()>& build, const std::string& label) {
  CHECK_THROWS_WITH(build(), Catch::Contains("[" + label + "]"));
}

}  // namespace

TEST_CASE("mma and copy errors that are detected at run time") {
  fails_to_run([](Builder& b, Buffer tile, Buffer, Value t) { multiply(b, tile, t / 16 * 8); }, "divergent_mma");
  fails_to_run(
      [](Builder& b, Buffer tile, Buffer, Value t) { b.for_loop(0, t, 1, [&](Value) { multiply(b, tile, 0); }); },
      "divergent_barrier");
  fails_to_run([](Builder& b, Buffer tile, Buffer x, Value t) { async_copy(b, tile, t * 8 + 4, x, t * 8); },
               "alignment");
  fails_to_run([](Builder& b, Buffer tile, Buffer x, Value t) { async_copy(b, tile, t / 2 * 8, x, t * 8); }, "race");
  fails_to_run(
      [](Builder& b, Buffer tile, Buffer x, Value t) {
        async_copy(b, tile, t * 8, x, t * 8);
        b.store(tile, t * 8 + 3, b.constant(bf16, 1));
      },
      "race");
  // Waits count groups: only the first of two has ended.
  const auto two_groups = [](int pending) {
    return [pending](Builder& b, Buffer tile, Buffer x, Value t) {
      async_copy(b, tile, t * 8, x, t * 8);
      commit_copies(b);
      async_copy(b, tile, t * 8 + 256, x, t * 8);
      commit_copies(b);
      wait_copies(b, pending);
      b.load(tile, t * 8);
      b.load(tile, t * 8 + 256);
    };
  };
  fails_to_run(two_groups(1), "uninitialised");
  std::vector<std::uint16_t> x(512);
  const BoundBuffer buffers[] = {{x.data(), 512}};
  CHECK(interpret(warp(two_groups(0)), buffers, {}) == 0);
}

TEST_CASE("mma and copies that no GPU can run are rejected with the label of the rule") {
  using Body = std::function<void(Builder&, Buffer, Buffer, Value)>;
  const auto refused = [](const Body& body, const std::string& label, int threads = 32, DType dtype = bf16) {
    is_refused([&] { return warp(body, threads, dtype); }, label);
  };
  const Body plain = [](Builder& b, Buffer tile, Buffer, Value) { multiply(b, tile, 0); };
  CHECK_NOTHROW(warp(plain));
  refused(plain, "warp_threads", 48);
  refused(plain, "mma_types", 32, f32);
  refused([](Builder& b, Buffer, Buffer x, Value) { multiply(b, x, 0); }, "mma_operands");
  refused([](Builder& b, Buffer tile, Buffer, Value) { multiply(b, tile, 0, 16, 16); }, "mma_shape");
  refused([](Builder& b, Buffer tile, Buffer, Value) { multiply(b, tile, 0, 8, 2); }, "mma_shape");
  refused([](Builder& b, Buffer tile, Buffer, Value) { multiply(b, tile, 4); }, "alignment");
  refused([](Builder& b, Buffer tile, Buffer, Value t) { b.if_(t < 8, [&] { multiply(b, tile, 0); }); },
          "warp_context");
  refused([](Builder& b, Buffer, Buffer x, Value t) { async_copy(b, x, t, x, t); }, "access");
  refused([](Builder& b, Buffer tile, Buffer, Value t) { async_copy(b, tile, t, tile, t); }, "copy_buffers");
  refused([](Builder& b, Buffer, Buffer x, Value t) { async_copy(b, b.alloc(bf16, 512), t, x, t); }, "copy_buffers");
  refused([](Builder& b, Buffer, Buffer, Value) { wait_copies(b, -1); }, "copy_groups");
  is_refused(
      [] {
        Builder b("outside");
        commit_copies(b);
        return test::round_trip(b.finish());
      },
      "copy_context");
}

TEST_CASE("a thread reads a value from another lane of its warp") {
  const auto turn = [](int threads, int by) {
    Builder b("turn");
    const Buffer x = b.buffer("x", i32, Access::read), y = b.buffer("y", i32, Access::write);
    b.for_loop(
        0, 2, 1,
        [&](Value row) {
          b.for_loop(
              0, threads, 1,
              [&](Value t) {
                b.store(y, row * threads + t, from_lane(b, b.load(x, row * threads + t), (t + 5) % 32 + by));
              },
              LoopKind::thread_x);
        },
        LoopKind::thread_y);
    return test::round_trip(b.finish());
  };
  std::vector<std::int32_t> x(128), y(128), expected;
  for (int i = 0; i < 128; ++i) x[static_cast<std::size_t>(i)] = i * 3;
  for (int i = 0; i < 128; ++i) expected.push_back((i / 32 * 32 + (i + 5) % 32) * 3);
  const BoundBuffer buffers[] = {{x.data(), 128}, {y.data(), 128}};
  interpret(turn(64, 0), buffers, {});
  CHECK(y == expected);
  CHECK(print(turn(64, 0)).find(" = from_lane %") != std::string::npos);
  CHECK_THROWS_WITH(interpret(turn(64, 1), buffers, {}), Catch::Contains("[warp_lane]"));
  is_refused([&] { return turn(16, 0); }, "warp_threads");
}

TEST_CASE("mma and copies print as text") {
  const std::string text = print(tile_product({.left_rows = 32, .right_transposed = true}));
  INFO(text);
  for (const char* part : {" = mma 32 rows of a[0 by 24], 16 rows of b[0 by 24]^T, ", " : f32x16\n", "async_copy a[",
                           " count ", "commit_copies\n", "wait_copies 0\n"})
    CHECK(text.find(part) != std::string::npos);
}
