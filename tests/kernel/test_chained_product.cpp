#include <catch2/catch.hpp>

#include <cmath>
#include <functional>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/kernel/intrinsics/gpu/exchange.h"
#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/gpu/wgmma.h"
#include "ir/kernel/printer.h"
#include "tests/support/kernels/chained_product.h"

/// Warpgroup matmuls whose left operand is in the threads' registers, and the value that consumers broadcast to the
/// producers.
using namespace lathe;
using namespace lathe::kernel;
using test::chained_product;
using test::ChainedProduct;
using Mistake = ChainedProduct::Mistake;

namespace {

constexpr int depth = ChainedProduct::depth, values = ChainedProduct::values, stride = ChainedProduct::stride;
constexpr int columns = 77;

float number(int i, float first) { return i == 0 ? first : static_cast<float>(i * 7 % 23 - 11) / 8; }
float narrow(DType dtype, float x) {
  return static_cast<float>(dtype == bf16 ? bf16_value(bf16_bits(x)) : f16_value(f16_bits(x)));
}

std::vector<float> run(const ChainedProduct& p, float first) {
  const auto bits = [&](float x) { return p.dtype == bf16 ? bf16_bits(x) : f16_bits(x); };
  std::vector<std::uint16_t> left, right;
  for (int i = 0; i < wgmma_rows * depth; ++i) left.push_back(bits(number(i, first)));
  for (int i = 0; i < columns * stride; ++i) right.push_back(bits(number(i + 5, 0)));
  std::vector<float> sums(static_cast<std::size_t>(wgmma_rows * values), -1);
  const auto count = [](const auto& v) { return static_cast<std::int64_t>(v.size()); };
  const BoundBuffer buffers[] = {
      {left.data(), count(left)}, {right.data(), count(right)}, {sums.data(), count(sums)}};
  const std::int64_t dims[] = {columns};
  interpret(chained_product(p), buffers, dims);
  return sums;
}

/// Computes the sums row by row and adds all columns `times` times.
std::vector<float> expected(const ChainedProduct& p, float first, int times) {
  std::vector<float> sums(static_cast<std::size_t>(wgmma_rows * values));
  const auto right = [](int column, int k) { return number(column * stride + k + 5, 0); };
  for (int row = 0; row < wgmma_rows; ++row)
    for (int i = 0; i < times * columns; ++i) {
      float score = 0;
      for (int k = 0; k < depth; ++k) score = std::fma(number(row * depth + k, first), right(i % columns, k), score);
      const float weight = narrow(p.dtype, score * 0.125F);
      for (int v = 0; v < values; ++v) {
        float& sum = sums[static_cast<std::size_t>(row * values + v)];
        sum = std::fma(weight, right(i % columns, depth + v), sum);
      }
    }
  return sums;
}

}  // namespace

TEST_CASE(
    "register operands of a matmul, in parts of the columns, with a number of iterations set by the consumers") {
  for (const DType dtype : {bf16, f16})
    for (const bool boxes : {false, true})
      for (const float first : {1.0F, -1.0F}) {
        const ChainedProduct p{.dtype = dtype, .boxes = boxes, .starts = boxes == (dtype == bf16)};
        CHECK(run(p, first) == expected(p, first, first > 0 ? 2 : 1));
      }
}

TEST_CASE("chained products that no GPU can run are rejected with the label of the rule") {
  const auto refused = [](Mistake mistake, const std::string& label) {
    CHECK_THROWS_WITH(chained_product({.mistake = mistake}), Catch::Contains("[" + label + "]"));
  };
  refused(Mistake::not_waited, "sums_under_way");
  refused(Mistake::stored_late, "mma_operands");
  refused(Mistake::of_a_variable, "mma_operands");
  refused(Mistake::starts_held, "mma_operands");
}

namespace {

/// Builds a pipeline of two stages for 128 threads, whose only loop ends at `end`.
void build_pipeline(const std::function<Value(Builder&, Value t, Buffer x)>& end,
                    const std::function<void(Builder&)>& use, const std::function<void(Builder&, Var)>& behind = {}) {
  Builder b("pipeline");
  const Buffer x = b.buffer("x", bf16, Access::read);
  const Buffer tile = b.alloc(bf16, 2 * swizzled_elements, Space::shared, "tile");
  const auto thread = [&](Value t) {
    stage_pipeline(b, 2, 128, [&] {
      const Var last = b.var(end(b, t, x));
      b.for_loop(0, b.get(last), 1, [&](Value) {
        pipeline_stage(
            b, [&](Value slot) { async_copy(b, tile, slot * 4096 + t * 8, x, t * 8); }, [&](Value) { use(b); });
      });
      if (behind) behind(b, last);
    });
  };
  b.for_loop(0, 256, 1, thread, LoopKind::thread_x);
  b.finish();
}

}  // namespace

TEST_CASE("producer inputs: variables that all threads set alike, and values broadcast by consumers") {
  const auto two = [](Builder& b, Value, Buffer) { return b.index(2); };
  const auto nothing = [](Builder&) {};
  CHECK_NOTHROW(build_pipeline(two, nothing, [](Builder& b, Var last) { b.set(last, b.index(1)); }));
  const auto loaded = [](Builder& b, Value t, Buffer x) { return b.cast(b.cast(b.load(x, t), f32), i64); };
  CHECK_THROWS_WITH(build_pipeline(loaded, nothing), Catch::Contains("[pipeline_producer]"));
  const auto told = [&](Builder& b, Value t, Buffer x) {
    return b.select(from_consumers(b, loaded(b, t, x) > 2), b.index(2), b.index(1));
  };
  CHECK_NOTHROW(build_pipeline(told, nothing));
  const auto in_branch = [](Builder& b, Var last) { b.if_(b.get(last) < 2, [&] { b.set(last, b.index(1)); }); };
  CHECK_THROWS_WITH(build_pipeline(two, nothing, in_branch), Catch::Contains("[pipeline_producer]"));
  const auto asks = [](Builder& b) { from_consumers(b, b.constant_int(boolean, 1)); };
  CHECK_THROWS_WITH(build_pipeline(two, asks), Catch::Contains("[consumers_context]"));
}

TEST_CASE("chained products print as text") {
  const std::string text = print(chained_product({}));
  INFO(text);
  for (const char* part : {"wgmma v1 += rows[0], keys[%", " depth 48\n", "wait_sums v1, v2, v3\n", "wgmma v2 += %",
                           ", values[%", " = from_consumers %"})
    CHECK(text.find(part) != std::string::npos);
  const std::string starts = print(chained_product({.starts = true}));
  CHECK(starts.find("wgmma v1 = rows[0], keys[%") != std::string::npos);
  CHECK(starts.find("wgmma v1 += ") == std::string::npos);
  CHECK(starts.find("wgmma v2 += %") != std::string::npos);
}
