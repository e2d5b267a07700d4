#include <fmt/core.h>

#include <numeric>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir {

std::vector<std::int64_t> dims_from_front(const Value& a, std::vector<std::int64_t> dims) {
  if (dims.empty()) {
    dims.resize(static_cast<std::size_t>(a.rank()));
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (std::int64_t& dim : dims)
    if (dim < 0 && dim >= -a.rank()) dim += a.rank();
  return dims;
}

Value sum_to(const Value& a, const Shape& shape) {
  const int lead = a.rank() - shape.rank();
  if (lead < 0)
    throw UserError(a.builder().location(), "sum_to",
                    fmt::format("{} has fewer dims than {}", a.type().to_string(), shape.to_string()), "sum_to_rank",
                    "the shape is one that broadcasts to the operand's");
  std::vector<std::int64_t> dims;
  std::vector<int> ones;
  for (int i = 0; i < a.rank(); ++i) {
    const bool kept_as_one = i >= lead && shape[i - lead].is(1) && !a.shape()[i].is(1);
    if (kept_as_one) ones.push_back(i - lead);
    if (i < lead || kept_as_one) dims.push_back(i);
  }
  if (dims.empty()) return a;
  Value result = sum(a, dims);
  for (const int i : ones) result = unsqueeze(result, i);
  return result;
}

}  // namespace lathe::ir
