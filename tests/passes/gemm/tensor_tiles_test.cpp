#include <catch2/catch.hpp>

#include "passes/gpu/gemm/mma/mma_tiles.h"

using namespace lathe;
using gpu::plan_tensor_product;

namespace {

void check_plan(std::optional<std::int64_t> m, std::optional<std::int64_t> n, std::optional<std::int64_t> k, int rows,
                int columns, int splits) {
  const gpu::TensorPlan plan = plan_tensor_product({}, 1, m, n, k).front();
  INFO(m.value_or(-1) << " x " << n.value_or(-1) << " x " << k.value_or(-1));
  CHECK(plan.tile.rows == rows);
  CHECK(plan.tile.columns == columns);
  CHECK(plan.splits == splits);
}

}  // namespace

TEST_CASE("tensor core tiles: large if they fill the GPU, otherwise small") {
  check_plan(4096, 4096, 4096, 128, 128, 1);
  check_plan(std::nullopt, 768, 3072, 128, 128, 1);  // tokens by features
  check_plan(std::nullopt, std::nullopt, 64, 128, 128, 1);
  check_plan(1024, 768, 768, 64, 64, 1);
  check_plan(16, 768, 768, 16, 64, 1);  // a few tokens
  check_plan(1, 1, 1, 16, 64, 1);
}

TEST_CASE("long sums with few tiles use split-K, short or unknown sizes do not") {
  check_plan(768, 768, std::nullopt, 128, 128, 7);  // the gradient of a weight
  check_plan(2304, 768, std::nullopt, 128, 128, 1);
  check_plan(768, 768, 256, 64, 64, 1);
  check_plan(std::nullopt, 64, std::nullopt, 64, 64, 1);
  CHECK(plan_tensor_product({}, std::nullopt, 128, 128, std::nullopt).front().splits == 1);
}

TEST_CASE("tensor core tile candidates share their kind and number of splits, which gives the same bits") {
  const auto names = [](std::optional<std::int64_t> m, std::int64_t n, std::optional<std::int64_t> k, bool groups) {
    std::string text;
    for (const gpu::TensorPlan& plan : plan_tensor_product({}, 1, m, n, k, groups)) text += to_string(plan) + "; ";
    return text;
  };
  CHECK(names(16, 768, 768, false) == "16 x 64 by 4 warps; 64 x 64 by 4 warps; 128 x 128 by 8 warps; ");
  CHECK(names(768, 768, std::nullopt, false) ==
        "128 x 128 by 8 warps, 7 splits; 64 x 64 by 4 warps, 7 splits; 16 x 64 by 4 warps, 7 splits; ");
  CHECK(names(4096, 4096, 4096, true) == "128 x 256 by 2 warpgroups; 128 x 128 by 2 warpgroups; ");
}
