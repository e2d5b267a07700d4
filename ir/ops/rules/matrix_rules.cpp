#include "ir/ops/rules/matrix_rules.h"

#include <fmt/core.h>

#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir::rules {

void require_matrices(const InferContext& ctx, int i) {
  require_kind(ctx, i, floats);
  ctx.require(ctx.operand(i).rank() >= 2, "triangle_rank", fmt::format("{} is no matrix", describe(ctx, i)),
              "give a tensor of two dims or more; the last two are the rows and columns");
}

void require_square(const InferContext& ctx, int i) {
  require_matrices(ctx, i);
  const TensorType& a = ctx.operand(i);
  ctx.require_equal(a.shape[a.rank() - 2], a.shape[a.rank() - 1], "matrix_square",
                    fmt::format("{} has matrices that are not square", describe(ctx, i)),
                    "the last two dims are equal");
}

std::int64_t matrices_in(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (std::size_t d = 0; d + 2 < sizes.size(); ++d) count *= sizes[d];
  return count;
}

std::vector<DimPair> batch_dims(const std::vector<int>& operands, int rank) {
  std::vector<DimPair> pairs;
  for (const int i : operands)
    for (int d = 0; d + 2 < rank; ++d) pairs.push_back({i, d, d});
  return pairs;
}

}  // namespace lathe::ir::rules
