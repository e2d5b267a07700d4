#include "ir/kernel/intrinsics/gpu/thread_sums.h"

#include <algorithm>

namespace lathe::kernel {

AccumulatorPosition accumulator_position(int columns, int lane, int index) {
  const int tile = index / 4, across = columns / 8;  // tiles of 16 x 8, row-major; four sums of each per thread
  return {tile / across * 16 + index % 4 / 2 * 8 + lane / 4, tile % across * 8 + lane % 4 * 2 + index % 2};
}

namespace {
std::size_t number_among(std::vector<int>& all, int wanted) {
  const auto found = std::find(all.begin(), all.end(), wanted);
  const auto number = static_cast<std::size_t>(found - all.begin());
  if (found == all.end()) all.push_back(wanted);
  return number;
}
}  // namespace

void OwnSums::add(AccumulatorPosition at) {
  positions.emplace_back(number_among(rows, at.row), number_among(columns, at.column));
}

void OwnSums::multiply(const std::vector<Scalar>& a, const std::vector<Scalar>& b, std::size_t depth,
                       const Scalar* sums, Scalar* out) const {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    Scalar sum = sums[i];
    for (std::size_t k = 0; k < depth; ++k)
      sum = evaluate_fma(f32, a[positions[i].first * depth + k], b[positions[i].second * depth + k], sum);
    out[i] = sum;
  }
}

}  // namespace lathe::kernel
