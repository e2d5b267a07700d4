#include <catch2/catch.hpp>

#include <cmath>

#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/printer.h"
#include "tests/support/kernels/random_product.h"
#include "tests/support/kernels/turned_product.h"

/// Warpgroups that take turns, several stages in a pipeline, and waits that leave matmuls running.
using namespace lathe;
using namespace lathe::kernel;
using test::turned_product;
using test::TurnedProduct;
using Mistake = TurnedProduct::Mistake;

namespace {

constexpr int width = TurnedProduct::width;

float value(DType dtype, std::uint16_t bits) {
  return static_cast<float>(dtype == bf16 ? bf16_value(bits) : f16_value(bits));
}
std::uint16_t narrow(DType dtype, float x) { return dtype == bf16 ? bf16_bits(x) : f16_bits(x); }

/// Computes the sums on the host, in a loop over the columns for each.
void plain(const TurnedProduct& p, std::span<const BoundBuffer> buffers, std::int64_t columns) {
  const auto* left = static_cast<const std::uint16_t*>(buffers[0].data);
  const auto* right = static_cast<const std::uint16_t*>(buffers[1].data);
  auto* sums = static_cast<float*>(buffers[2].data);
  const auto element = [&](const std::uint16_t* from, std::int64_t at) { return value(p.dtype, from[at]); };
  std::fill_n(sums, p.rows() * width, 0.0F);
  for (int row = 0; row < p.rows(); ++row)
    for (std::int64_t i = 0; i < columns; ++i) {
      float score = 0;
      for (int k = 0; k < width; ++k)
        score = std::fma(element(left, row * width + k), element(right, i * 2 * width + k), score);
      const float weight = value(p.dtype, narrow(p.dtype, score * 0.125F));
      for (int v = 0; v < width; ++v) {
        float& sum = sums[row * width + v];
        sum = std::fma(weight, element(right, i * 2 * width + width + v), sum);
      }
    }
}

template <class Run>
std::vector<float> product(const TurnedProduct& p, std::int64_t columns, const Run& run) {
  return test::random_product(p.dtype, 330 * 2 * width, static_cast<std::size_t>(p.rows() * width), {columns}, run);
}

}  // namespace

TEST_CASE("turns: stages before, in and after a loop give the sums of the loop, for any number of tiles") {
  for (const TurnedProduct& p : {TurnedProduct{}, TurnedProduct{.dtype = f16, .warpgroups = 3}, {bf16, 1}})
    for (const std::int64_t columns : {0, 30, 64, 130, 330}) {
      INFO(p.warpgroups << " warpgroups, " << columns << " columns");
      const Kernel kernel = turned_product(p);
      const auto found = product(p, columns, [&](auto buffers, auto dims) { interpret(kernel, buffers, dims); });
      CHECK(found == product(p, columns, [&](auto buffers, auto) { plain(p, buffers, columns); }));
    }
}

TEST_CASE("turns and groups of matmuls that no GPU can run are rejected with the label of the rule") {
  const auto refused = [](Mistake mistake, const std::string& label) {
    CHECK_THROWS_WITH(turned_product({.mistake = mistake}), Catch::Contains("[" + label + "]"));
  };
  refused(Mistake::one_group, "sums_under_way");
  refused(Mistake::sums_first, "sums_under_way");
  refused(Mistake::left_running, "sums_under_way");
  refused(Mistake::never_ended, "sums_under_way");
  refused(Mistake::waits_in_turn, "turn_body");
  refused(Mistake::turn_in_branch, "turn_context");
  refused(Mistake::turn_outside, "turn_context");
  refused(Mistake::commits_outside, "warpgroup_context");
  const auto waits = [](int leaving, bool in_stage) {
    Builder b("waits");
    b.for_loop(
        0, 256, 1,
        [&](Value) {
          stage_pipeline(b, 2, 128, [&] {
            const Var sums = b.var({f32, 32}, b.constant(f32, 0));
            const auto wait = [&] { wait_sums(b, {&sums, 1}, leaving); };
            pipeline_stage(b, [](Value) {}, [&](Value) { in_stage ? wait() : void(); });
            if (!in_stage) wait();
          });
        },
        LoopKind::thread_x);
    b.finish();
  };
  CHECK_NOTHROW(waits(7, true));
  CHECK_THROWS_WITH(waits(8, true), Catch::Contains("[sum_groups]"));
  CHECK_THROWS_WITH(waits(1, false), Catch::Contains("[sum_groups]"));
}

TEST_CASE("turns print as text") {
  const std::string text = print(turned_product({}));
  INFO(text);
  for (const char* part : {"turn {\n", "wgmma v0 = left_2[%", "  commit_sums\n", "wgmma v1 += %",
                           "wait_sums v0 leaving 1\n", "wait_sums v1 ended\n", "wait_sums v1\n"})
    CHECK(text.find(part) != std::string::npos);
}
