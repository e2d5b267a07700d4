#include "ir/ops/functional.h"
#include "ir/ops/list.h"

namespace lathe::ir {

Value view_as_complex(const Value& a) { return a.builder().add(ops::view_as_complex, {a}); }
Value view_as_real(const Value& a) { return a.builder().add(ops::view_as_real, {a}); }
Value conj(const Value& a) { return a.builder().add(ops::conj, {a}); }
Value polar(const Value& radius, const Value& angle) { return radius.builder().add(ops::polar, {radius, angle}); }

}  // namespace lathe::ir
