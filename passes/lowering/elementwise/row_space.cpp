#include "passes/lowering/elementwise/row_space.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace lathe {

bool merges(const ElementwiseProgram& program, const std::vector<int>& dims) {
  const auto fine = [&](const Linear& form) {
    return form.coefficients.empty() || merges(form, dims, program.domain);
  };
  return std::all_of(program.code.begin(), program.code.end(), [&](const auto& i) { return fine(i.form); }) &&
         std::all_of(program.stores.begin(), program.stores.end(), [&](const auto& s) { return fine(s.form); });
}

RowSpace::RowSpace(const ElementwiseProgram& program, int inner_count, const VectorRegisters& vectors) {
  const int rank = program.domain.rank();
  if (inner_count == 0) {
    inner_count = std::min(rank, 1);
    const auto trailing = [&](int count) {
      std::vector<int> dims(static_cast<std::size_t>(count));
      std::iota(dims.begin(), dims.end(), rank - count);
      return dims;
    };
    while (inner_count < rank && merges(program, trailing(inner_count + 1))) ++inner_count;
  }
  for (int d = 0; d < rank; ++d) (d < rank - inner_count ? outer : inner).push_back(d);
  for (const int d : inner) inner_bits |= 1ULL << d;
  lanes = program_lanes(program, vectors);
  if (const auto size = program.points(inner).value(); size && *size < lanes)
    lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(*size, 1))));
}

}  // namespace lathe
