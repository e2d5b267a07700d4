#include "passes/lowering/elementwise/row_space.h"

#include <algorithm>
#include <bit>

namespace lathe {

namespace {

/// Whether every access steps through the dims from `first` by one stride.
bool merges(const ElementwiseProgram& program, int first) {
  std::vector<int> dims;
  for (int d = first; d < program.domain.rank(); ++d) dims.push_back(d);
  const auto fine = [&](const Linear& form) {
    return form.coefficients.empty() || LoopIndices::merges(form, dims, program.domain);
  };
  return std::all_of(program.code.begin(), program.code.end(), [&](const auto& i) { return fine(i.form); }) &&
         std::all_of(program.stores.begin(), program.stores.end(), [&](const auto& s) { return fine(s.form); });
}

}  // namespace

RowSpace::RowSpace(const ElementwiseProgram& program, int inner_count, const VectorRegisters& vectors) {
  const int rank = program.domain.rank();
  if (inner_count == 0) {
    inner_count = std::min(rank, 1);
    while (inner_count < rank && merges(program, rank - inner_count - 1)) ++inner_count;
  }
  for (int d = 0; d < rank; ++d) (d < rank - inner_count ? outer : inner).push_back(d);
  for (const int d : inner) inner_bits |= 1ULL << d;
  lanes = program_lanes(program, vectors);
  if (const auto size = program.points(inner).value(); size && *size < lanes)
    lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(*size, 1))));
}

}  // namespace lathe
