#include "frontend/ops/derived_ops.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Complex numbers and their parts.
namespace lathe::pt2 {

namespace {

/// Part 0 of complex numbers is the real one.
Results part_of(const OpCall& call, std::int64_t part) {
  const Tensor x = call.tensor(0);
  if (is_complex(x.dtype())) return {view_as_real(x).select(-1, part)};
  if (part == 1) call.fail("the operand has no imaginary part", "import_dtype");
  return {x};
}
Results real_part(const OpCall& call) { return part_of(call, 0); }
Results imaginary_part(const OpCall& call) { return part_of(call, 1); }

Results polar_op(const OpCall& call) { return {polar(call.tensor(0), call.tensor(1))}; }
Results complex_op(const OpCall& call) {
  const Tensor real = call.tensor(0), imaginary = call.tensor(1), sum = real + imaginary;
  return {view_as_complex(stack({real.expand(sum.shape()), imaginary.expand(sum.shape())}, -1))};
}
Results complex_view(const OpCall& call) { return {view_as_complex(call.tensor(0))}; }
Results real_view(const OpCall& call) { return {view_as_real(call.tensor(0))}; }
Results conjugate(const OpCall& call) {
  return {is_complex(call.dtype(0)) ? Value(conj(call.tensor(0))) : call.operand(0)};
}
/// Lathe computes conjugates, where PyTorch marks views.
Results resolved_view(const OpCall& call) { return {call.operand(0)}; }

}  // namespace

std::span<const OpRecord> aten_complex_ops() {
  static constexpr OpRecord records[] = {
      aten("real", "self", "", real_part),
      aten("imag", "self", "", imaginary_part),
      aten("polar", "abs angle", "", polar_op),
      aten("complex", "real imag", "", complex_op),
      aten("view_as_complex", "self", "", complex_view),
      aten("view_as_real", "self", "", real_view),
      aten("_conj", "self", "", conjugate),
      aten("conj", "self", "", conjugate),
      aten("conj_physical", "self", "", conjugate),
      aten("_conj_physical", "self", "", conjugate),
      aten("resolve_conj", "self", "", resolved_view),
      aten("resolve_neg", "self", "", resolved_view),
  };
  return records;
}

}  // namespace lathe::pt2
