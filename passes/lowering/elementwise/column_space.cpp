#include "passes/lowering/elementwise/column_space.h"

#include <algorithm>

namespace lathe {

ColumnSpace::ColumnSpace(const LoweringContext& lowering, const Region& region, const ElementwiseProgram& program) {
  const auto folded = reduced_dims(lowering.graph, lowering.graph[region.members[0]]);
  int last = -1;
  for (const int d : folded)
    if (!program.domain[d].is(1)) last = std::max(last, d);
  for (int d = 0; d < program.domain.rank(); ++d) {
    const bool is_folded = std::find(folded.begin(), folded.end(), d) != folded.end();
    (is_folded ? reduced : d > last ? columns : outer).push_back(d);
  }
}

}  // namespace lathe
