#include "ir/ops/dilated.h"

#include "ir/ops/functional/functional.h"

namespace lathe::ir {

Value dilated(const Value& a, int d, std::int64_t step) {
  Shape merged = a.shape();
  merged.set(d, merged[d].unnamed() * Dim(step));
  return reshape(pad(unsqueeze(a, d + 1), d + 1, 0, step - 1), merged);
}

Value spread(const Value& a, int d, std::int64_t step) {
  if (step == 1) return a;
  return slice(dilated(a, d, step), d, 0, (a.shape()[d].unnamed() - Dim(1)) * Dim(step) + Dim(1));
}

}  // namespace lathe::ir
