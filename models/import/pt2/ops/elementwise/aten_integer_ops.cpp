#include <fmt/core.h>

#include "frontend/ops/loops/loops.h"
#include "models/import/ops/elementwise_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Functions of whole numbers.
namespace lathe::pt2 {

namespace {

/// Two operands of an integer dtype, broadcast to one shape. Bytes are i32.
struct Whole {
  Tensor a, b;
  DType dtype;
};
Whole whole_operands(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  if (is_float(dtype) || is_complex(dtype) || dtype == boolean)
    call.fail(fmt::format("divisors of {}", name(dtype)), "import_dtype", "the operands must be integers");
  const DType wide = is_byte(dtype) ? i32 : dtype;
  const Tensor a = operand_as(call, 0, dtype).to(wide), b = operand_as(call, 1, dtype).to(wide);
  const Shape shape = (a + b).shape();
  return {a.expand(shape), b.expand(shape), dtype};
}

/// Euclid's algorithm. Neighbouring Fibonacci numbers take the most steps: 91 for i64 and 45 for i32.
Tensor greatest_divisor(const Tensor& a, const Tensor& b) {
  const std::int64_t steps = a.dtype() == i64 ? 92 : 46;
  const RepeatBody step = [](std::span<const Tensor> pair, const Tensor&) {
    const Tensor &divisor = pair[0], &number = pair[1], ends = divisor == 0;
    const Tensor rest = number % where(ends, 1, divisor);
    return LoopStep{{where(ends, divisor, rest), where(ends, number, divisor)}};
  };
  return repeat(steps, {abs(a), abs(b)}, step, {.name = "euclid"}).carries[1];
}

Results greatest_common_divisor(const OpCall& call) {
  const Whole whole = whole_operands(call);
  return {greatest_divisor(whole.a, whole.b).to(whole.dtype)};
}

/// |a / gcd(a, b) * b|; 0 if a or b is 0.
Results least_common_multiple(const OpCall& call) {
  const auto [a, b, dtype] = whole_operands(call);
  const Tensor divisor = greatest_divisor(a, b);
  return {abs(a / where(divisor == 0, 1, divisor) * b).to(dtype)};
}

}  // namespace

std::span<const OpRecord> aten_integer_ops() {
  static constexpr OpRecord records[] = {
      aten("gcd", "self other", "", greatest_common_divisor),
      aten("lcm", "self other", "", least_common_multiple),
  };
  return records;
}

}  // namespace lathe::pt2
