#pragma once

#include "ir/kernel/build/builder.h"

namespace lathe::cpu {

/// A total of block sums in f32, and the part that its additions have rounded off so far. Both are vectors of as many
/// lanes.
struct CompensatedTotal {
  kernel::Value sum, excess;  ///< excess: an estimate of `sum` minus the exact total
};

/// Returns total + block by Kahan's compensated summation (Kahan, 1965): the error of n additions does not grow with
/// n.
inline CompensatedTotal add_block(const CompensatedTotal& total, kernel::Value block) {
  const kernel::Value term = block - total.excess, sum = total.sum + term;
  return {sum, (sum - total.sum) - term};
}

}  // namespace lathe::cpu
