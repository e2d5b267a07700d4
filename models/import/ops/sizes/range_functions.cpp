#include "models/import/ops/sizes/range_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/import/ops/sizes/size_checks.h"

namespace lathe::importing {

Dim slice_bound(const Dim& bound, const Dim& size, std::int64_t low, const OpCall& call) {
  if (bound.value() && size.value()) {
    const std::int64_t n = *size.value(), at = *bound.value() < 0 ? *bound.value() + n : *bound.value();
    return std::clamp(at, low, n + low);
  }
  // Beyond any size. A smaller number is checked against the size at run time, by the rule of slice.
  constexpr std::int64_t end = std::numeric_limits<std::int32_t>::max();
  if (bound.value() && *bound.value() >= end) return size + Dim(low);
  if (bound.value() && *bound.value() <= -end) return low;
  const Sign sign = sign_of(bound);
  Dim from_end = size + bound;
  if (sign == Sign::not_positive && !from_end.is(0))  // 0 does not count from the end
    require_at_least(call, 1, Dim(0) - bound,
                     fmt::format("the bound {} of a slice counts from the end", bound.to_string()));
  if (sign == Sign::negative || sign == Sign::not_positive) return from_end;
  if (sign == Sign::unknown)
    call.fail(fmt::format("whether the bound {} is negative depends on the sizes", bound.to_string()), "import_size");
  const Sign excess = sign_of(bound - size);
  return excess == Sign::positive || excess == Sign::not_negative ? size : bound;
}

Tensor sliced(const Tensor& x, int axis, const Dim& start, const Dim& end, std::int64_t step, const OpCall& call) {
  const Dim size = x.size(axis), first = slice_bound(start, size.unnamed(), 0, call),
            last = slice_bound(end, size.unnamed(), 0, call);
  if (first.is(0) && last == size && step == 1) return x;
  const bool is_empty = (last - first).value().value_or(1) <= 0;
  return x.slice(axis, first, is_empty ? first : last, step);
}

Tensor integer_range(const OpCall& call, const Dim& start, const Dim& limit, std::int64_t step, DType dtype) {
  if (step == 0) call.fail("the step is 0", "import_operand");
  std::optional<Dim> count;
  if (const Dim length = limit - start; length.value())
    count = std::max<std::int64_t>((*length.value() + step + (step > 0 ? -1 : 1)) / step, 0);
  else
    count = length.divided_by(step);
  if (!count)
    call.fail(fmt::format("the number of elements from {} to {} by {} is no polynomial of sizes", start.to_string(),
                          limit.to_string(), step),
              "import_size", "use a step of 1");
  Tensor range = call.graph().arange(*count, dtype);
  if (step != 1) range = range * step;
  return start.is(0) ? range : range + call.graph().dim_value(start, dtype);
}

Tensor float_range(const OpCall& call, double start, double limit, double step, DType dtype) {
  const double count = std::max(std::ceil((limit - start) / step), 0.0);
  if (!(count < 0x1p31)) call.fail("the range is infinite or has more than 2^31 elements", "import_size");
  return (call.graph().arange(static_cast<std::int64_t>(count), at_least_f32(dtype)) * step + start).to(dtype);
}

}  // namespace lathe::importing
