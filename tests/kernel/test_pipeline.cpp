#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/copy_box.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "ir/kernel/printer.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/kernels/wgmma_product.h"

/// StagePipelines and wgmma.
using namespace lathe;
using namespace lathe::kernel;
using test::wgmma_product;
using test::WgmmaProduct;
using Mistake = WgmmaProduct::Mistake;

namespace {

constexpr int stride = 208;  // row stride of matrices in memory
constexpr int extent = 144 * stride;

float number(int i) { return static_cast<float>(i * 7 % 23 - 11) / 8; }

std::vector<float> run(const WgmmaProduct& p, std::int64_t k) {
  std::vector<std::uint16_t> operands[2];
  for (const int s : {0, 1})
    for (int i = 0; i < extent; ++i)
      operands[s].push_back(p.dtype == bf16 ? bf16_bits(number(i + 5 * s)) : f16_bits(number(i + 5 * s)));
  std::vector<float> sums(static_cast<std::size_t>(p.tiles * wgmma_rows * wgmma_columns), -1);
  const BoundBuffer buffers[] = {{operands[0].data(), extent},
                                 {operands[1].data(), extent},
                                 {sums.data(), static_cast<std::int64_t>(sums.size())}};
  const std::int64_t dims[] = {k, stride, stride};
  interpret(wgmma_product(p), buffers, dims);
  return sums;
}

float expected(const WgmmaProduct& p, int i, int j, int k) {
  float sum = 0;
  for (int l = 0; l < k; ++l)
    sum = std::fma(number(p.left_transposed ? l * stride + i : i * stride + l),
                   number(5 + (p.right_transposed ? l * stride + j : j * stride + l)), sum);
  return sum;
}

}  // namespace

TEST_CASE("pipeline stages accumulate exact products in order, for both layouts of both operands, ragged k") {
  for (const auto& [left, right, k] :
       {std::tuple{false, false, 200}, {false, true, 64}, {true, false, 37}, {true, true, 131}, {false, false, 0}}) {
    const WgmmaProduct p{
        .dtype = k == 64 ? f16 : bf16, .left_transposed = left, .right_transposed = right, .tiles = k == 200 ? 2 : 1};
    const std::vector<float> sums = run(p, k);
    for (int i = 0; i < p.tiles * wgmma_rows; ++i)
      for (int j = 0; j < wgmma_columns; ++j)
        REQUIRE(sums[static_cast<std::size_t>(i * wgmma_columns + j)] == expected(p, i, j, k));
  }
}

TEST_CASE("box copies match 16-byte copies, with zeros past the ends") {
  for (const auto& [left, right, k] :
       {std::tuple{false, false, 200}, {false, true, 64}, {true, false, 40}, {true, true, 136}}) {
    WgmmaProduct p{.left_transposed = left, .right_transposed = right, .tiles = k == 200 ? 2 : 1};
    const std::vector<float> copied = run(p, k);
    p.left_boxes = true;
    CHECK(run(p, k) == copied);
    p.right_boxes = true;
    CHECK(run(p, k) == copied);
  }
  CHECK_THROWS_WITH(run({.mistake = Mistake::one_slot, .left_boxes = true}, 200), Catch::Contains("[stage]"));
}

TEST_CASE(
    "the accumulators of a warpgroup cover all elements, and the positions of a tile all positions, once each") {
  std::vector<int> sums(wgmma_rows * wgmma_columns), positions(swizzled_elements);
  for (int t = 0; t < warpgroup_threads; ++t)
    for (int i = 0; i < 64; ++i) {
      const AccumulatorPosition at = wgmma_sum_position(t, i);
      ++sums[static_cast<std::size_t>(at.row * wgmma_columns + at.column)];
    }
  for (int l = 0; l < swizzle_side; ++l)
    for (int e = 0; e < swizzle_side; ++e) ++positions[static_cast<std::size_t>(swizzled_offset(l, e))];
  CHECK(sums == std::vector<int>(sums.size(), 1));
  CHECK(positions == std::vector<int>(positions.size(), 1));
  CHECK(swizzled_offset(0, 63) == 63);
  CHECK(swizzled_offset(9, 17) == 9 * 64 + 3 * 8 + 1);  // the 128-byte swizzle: chunk 2 of row 1 of 8 is at 2 ^ 1
}

TEST_CASE("wrong layouts give wrong sums") {
  for (const Mistake mistake : {Mistake::unswizzled, Mistake::tiles_exchanged}) {
    const std::vector<float> sums = run({.mistake = mistake}, 64);
    int wrong = 0;
    for (int j = 0; j < wgmma_columns; ++j)
      wrong += sums[static_cast<std::size_t>(wgmma_columns + j)] != expected({}, 1, j, 64);
    CHECK(wrong > 100);
  }
}

TEST_CASE("detects stages that are read too early or too late, or produced too early") {
  const auto fails = [](Mistake mistake, const std::string& text) {
    CHECK_THROWS_WITH(run({.mistake = mistake}, 200), Catch::Contains(text));
  };
  fails(Mistake::next_slot, "which was never written  [uninitialised]");
  fails(Mistake::one_slot,
        "iteration 1 of a pipeline produces a[0], which iteration 0 produced and may still consume  [stage]");
  fails(Mistake::half_produced, "which was never written  [uninitialised]");
  fails(Mistake::read_outside, "outside the stage  [stage]");
}

namespace {

struct Parts {
  Builder& b;
  Buffer tile, x;
  Value t;
};
using Body = std::function<void(const Parts&)>;

Kernel block(const Body& body, int threads = 256) {
  Builder b("pipeline");
  const Buffer x = b.buffer("x", bf16, Access::read);
  const Buffer tile = b.alloc(bf16, 2 * 3 * swizzled_elements, Space::shared, "tile");
  b.for_loop(0, threads, 1, [&](Value t) { body({b, tile, x, t}); }, LoopKind::thread_x);
  return test::round_trip(b.finish());
}

/// A pipeline of two stages for 128 threads, one iteration.
Body pipeline(const Body& produce, const Body& consume, int consumers = 128, int stages = 2) {
  return [=](const Parts& p) {
    stage_pipeline(p.b, stages, consumers,
                   [&] { pipeline_stage(p.b, [&](Value) { produce(p); }, [&](Value) { consume(p); }); });
  };
}

void copy(const Parts& p) { async_copy(p.b, p.tile, p.t * 8, p.x, p.t * 8); }
void nothing(const Parts&) {}

/// A pipeline of two stages for 128 threads, with two iterations of matmuls that are waited for.
Body product(const Body& produce, const std::function<void(const Parts&, Var)>& consume,
             const Type& type = {f32, 64}) {
  return [=](const Parts& p) {
    stage_pipeline(p.b, 2, 128, [&] {
      const Var sums = p.b.var(type, p.b.constant(f32, 0));
      p.b.for_loop(0, 2, 1,
                   [&](Value) { pipeline_stage(p.b, [&](Value) { produce(p); }, [&](Value) { consume(p, sums); }); });
      wait_sums(p.b, {&sums, 1});
    });
  };
}
void multiply(const Parts& p, Var sums) { wgmma(p.b, sums, {p.tile, 0}, {p.tile, swizzled_elements}); }

void refused(const Body& body, const std::string& label, int threads = 256) {
  CHECK_THROWS_WITH(block(body, threads), Catch::Contains("[" + label + "]"));
}

void fails_to_run(const Body& body, const std::string& text) {
  std::vector<std::uint16_t> x(8192);
  const BoundBuffer buffers[] = {{x.data(), 8192}};
  CHECK_THROWS_WITH(interpret(block(body), buffers, {}), Catch::Contains(text));
}

}  // namespace

TEST_CASE("pipeline errors that are detected at run time") {
  const Body same = [](const Parts& p) { async_copy(p.b, p.tile, p.t % 64 * 8, p.x, p.t * 8); };
  fails_to_run(pipeline(same, nothing), "in one iteration  [race]");
  const Body writes = [](const Parts& p) { p.b.store(p.tile, p.t * 8 + 1024, p.b.constant(bf16, 0)); };
  fails_to_run(pipeline(copy, writes), "which a pipeline produces  [stage]");
  const Body twice = [](const Parts& p) {
    stage_pipeline(p.b, 2, 128, [&] {
      p.b.for_loop(0, 2, 1, [&](Value i) {
        pipeline_stage(
            p.b, [&](Value) { p.b.if_(equal(i, 1), [&] { copy(p); }); },
            [&](Value) { p.b.store(p.tile, p.t * 8 + 1024, p.b.constant(bf16, 0)); });
      });
    });
  };
  fails_to_run(twice, "which its consumers write  [stage]");
  const auto from = [](const std::function<Value(const Parts&)>& first) {
    return product(copy, [=](const Parts& p, Var sums) { wgmma(p.b, sums, {p.tile, first(p)}, {p.tile, first(p)}); });
  };
  fails_to_run(from([](const Parts& p) { return p.t / 32 * 512; }), "[divergent_mma]");
  fails_to_run(from([](const Parts& p) { return p.t / 512 + 8; }), "[alignment]");
}

TEST_CASE("pipelines that no GPU can run are rejected with the label of the rule") {
  CHECK_NOTHROW(block(pipeline(copy, nothing)));
  refused(pipeline(copy, nothing, 96), "pipeline_threads");
  refused(pipeline(copy, nothing, 256), "pipeline_threads");
  refused(pipeline(copy, nothing, 128, 1), "pipeline_stage");
  refused([](const Parts& p) { stage_pipeline(p.b, 2, 128, [] {}); }, "pipeline_stage");
  refused([](const Parts& p) { pipeline_stage(p.b, [](Value) {}, [](Value) {}); }, "pipeline_stage");
  refused(
      [](const Parts& p) {
        stage_pipeline(p.b, 2, 128,
                       [&] { p.b.if_(p.t < 8, [&] { pipeline_stage(p.b, [](Value) {}, [](Value) {}); }); });
      },
      "pipeline_stage");
  refused([](const Parts& p) { p.b.if_(p.t < 8, [&] { pipeline(copy, nothing)(p); }); }, "pipeline_context");
  refused([](const Parts& p) { pipeline(copy, nothing)(p), p.b.barrier(); }, "pipeline_context");
  refused([](const Parts& p) { pipeline(copy, nothing)(p), pipeline(copy, nothing)(p); }, "pipeline_context");
  refused(pipeline([](const Parts& p) { p.b.store(p.tile, p.t, p.b.constant(bf16, 0)); }, nothing),
          "pipeline_producer");
  refused(pipeline([](const Parts& p) { p.b.barrier(); }, nothing), "pipeline_producer");
  refused(
      [](const Parts& p) {
        stage_pipeline(p.b, 2, 128, [&] {
          const Value loaded = p.b.cast(p.b.load(p.x, p.t), i64);
          pipeline_stage(p.b, [&](Value) { async_copy(p.b, p.tile, p.t * 8, p.x, loaded * 8); }, [](Value) {});
        });
      },
      "pipeline_producer");
}

TEST_CASE("boxes that no GPU can copy are rejected with the label of the rule") {
  using Boxes = Builder::Boxes;
  const Boxes square{.offset = 0, .dims = {{64, 1, 64}, {64, 64, 64}}};
  const auto map = [](const Boxes& boxes) { return [=](const Parts& p) { p.b.tensor_map(p.x, boxes); }; };
  const auto box = [&](const std::function<void(const Parts&, int)>& produce) {
    return [=](const Parts& p) {
      const int number = p.b.tensor_map(p.x, square);
      pipeline([&](const Parts& in) { produce(in, number); }, nothing)(p);
    };
  };
  CHECK_NOTHROW(block(map(square)));
  CHECK_NOTHROW(block(box([](const Parts& p, int m) { copy_box(p.b, p.tile, 0, m, {p.b.index(0), p.b.index(0)}); })));
  refused([&](const Parts& p) { p.b.tensor_map(p.tile, square); }, "map_tensor");
  refused([](const Parts& p) { p.b.tensor_map(p.x, {.offset = 0, .dims = {{p.t, 1, 64}, {64, 64, 64}}}); },
          "map_tensor");
  refused(map({.offset = 0, .dims = {{64, 1, 64}, {64, 68, 64}}}), "alignment");
  refused(map({.offset = 4, .dims = {{64, 1, 64}, {64, 64, 64}}}), "alignment");
  refused(map({.offset = 0, .dims = {{64, 1, 64}}}), "map_box");
  refused(map({.offset = 0, .dims = std::vector<Boxes::Dim>(6, {64, 64, 64})}), "map_box");
  for (const auto& [elements, rows] : {std::pair{32, 64}, {64, 0}, {64, 257}, {64, 12}})
    refused(map({.offset = 0, .dims = {{64, 1, elements}, {64, 64, rows}}}), "map_box");
  const auto at = [](const Parts& p, std::size_t dims) { return std::vector<Value>(dims, p.b.index(0)); };
  refused(box([&](const Parts& p, int m) { copy_box(p.b, p.tile, 0, m + 1, at(p, 2)); }), "map_tensor");
  refused(box([&](const Parts& p, int m) { copy_box(p.b, p.tile, 0, m, at(p, 3)); }), "arity");
  refused(box([&](const Parts& p, int m) { copy_box(p.b, p.tile, 64, m, at(p, 2)); }), "alignment");
  refused(box([&](const Parts& p, int m) { copy_box(p.b, p.x, 0, m, at(p, 2)); }), "access");
  refused(box([&](const Parts& p, int m) { p.b.if_(p.t < 8, [&] { copy_box(p.b, p.tile, 0, m, at(p, 2)); }); }),
          "copy_context");
  refused([&](const Parts& p) { copy_box(p.b, p.tile, 0, p.b.tensor_map(p.x, square), at(p, 2)); }, "copy_context");
}

TEST_CASE("warpgroup matmuls that no GPU can run are rejected with the label of the rule") {
  CHECK_NOTHROW(block(product(copy, multiply)));
  const auto zeros = [](const Parts& p) { return p.b.var({f32, 64}, p.b.constant(f32, 0)); };
  refused([&](const Parts& p) { multiply(p, zeros(p)); }, "warpgroup_context");
  const auto rarely = [](const Parts& p, Var sums) { p.b.if_(p.t < 128, [&] { multiply(p, sums); }); };
  refused(product(copy, rarely), "warpgroup_context");
  const auto rarely_waits = [](const Parts& p, Var sums) { p.b.if_(p.t < 128, [&] { wait_sums(p.b, {&sums, 1}); }); };
  refused(product(copy, rarely_waits), "warpgroup_context");
  refused(
      [&](const Parts& p) {
        const Var sums = zeros(p);
        wait_sums(p.b, {&sums, 1});
      },
      "warpgroup_context");
  refused(product(copy, [](const Parts& p, Var sums) { wgmma(p.b, sums, {p.tile, 8}, {p.tile, 0}); }), "alignment");
  refused(product(copy, [](const Parts& p, Var sums) { wgmma(p.b, sums, {p.x, 0}, {p.tile, 0}); }), "mma_operands");
  CHECK_NOTHROW(block(product(copy, multiply, {f32, 8})));
  refused(product(copy, multiply, {f32, 4}), "mma_shape");
  refused(product(copy, [](const Parts& p, Var sums) { wgmma(p.b, sums, {p.tile, 0}, {p.tile, 4096}, 24); }),
          "mma_shape");
  const auto stores = [](const Parts& p, Var sums) {
    multiply(p, sums);
    p.b.store(p.tile, p.t, p.b.constant(bf16, 0));
  };
  refused(product(copy, stores), "mma_operands");
}

TEST_CASE("accumulators used while matmuls are pending are rejected") {
  const auto reads = [](const Parts& p, Var sums) { p.b.var(p.b.get(sums)); };
  CHECK_NOTHROW(
      block(product(copy, [&](const Parts& p, Var) { reads(p, p.b.var({f32, 64}, p.b.constant(f32, 0))); })));
  const auto behind = [&](const Parts& p, Var sums) { multiply(p, sums), reads(p, sums); };
  refused(product(copy, behind), "sums_under_way");
  // In the next iteration they are still running.
  const auto before = [&](const Parts& p, Var sums) { reads(p, sums), multiply(p, sums); };
  refused(product(copy, before), "sums_under_way");
  const auto clears = [](const Parts& p, Var sums) { multiply(p, sums), p.b.set(sums, p.b.constant(f32, 0)); };
  refused(product(copy, clears), "sums_under_way");
  const auto other = [](bool waits) {
    return [waits](const Parts& p) {
      stage_pipeline(p.b, 2, 128, [&] {
        const Var sums[] = {p.b.var({f32, 64}, p.b.constant(f32, 0)), p.b.var({f32, 64}, p.b.constant(f32, 0))};
        pipeline_stage(p.b, [&](Value) { copy(p); }, [&](Value) { multiply(p, sums[0]), multiply(p, sums[1]); });
        wait_sums(p.b, {sums, waits ? 2U : 1U});
      });
    };
  };
  CHECK_NOTHROW(block(other(true)));
  refused(other(false), "sums_under_way");
  CHECK_THROWS_WITH(wgmma_product({.mistake = Mistake::not_waited}), Catch::Contains("[sums_under_way]"));
}

TEST_CASE("pipelines print as text") {
  const std::string text = print(wgmma_product({.right_transposed = true}));
  INFO(text);
  for (const char* part : {"pipeline of 2 for 128 threads {\n", "stage i3 produce {\n", "} consume {\n",
                           "wgmma v0 += a[%", "], b[%", "]^T\n", "wait_sums v0\n"})
    CHECK(text.find(part) != std::string::npos);
}
