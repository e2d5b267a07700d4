#include "passes/transforms/recognize/recognize.h"

#include "passes/transforms/recognize/formulas.h"

namespace lathe::ir {

std::optional<Value> recognized(const Node& node, std::span<const Value> operands) {
  if (node.type.dtype != f32 && node.type.dtype != f64) return std::nullopt;
  for (const auto formula :
       {recognize_gelu, recognize_silu, recognize_layer_norm, recognize_rms_norm, recognize_rope}) {
    const std::optional<Value> found = formula(node, operands);
    if (found && found->shape() == node.type.shape && found->dtype() == node.type.dtype) return found;
  }
  return std::nullopt;
}

}  // namespace lathe::ir
