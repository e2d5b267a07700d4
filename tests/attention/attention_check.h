#pragma once

#include <functional>
#include <optional>

#include "codegen/llvm/jit.h"
#include "ir/tensor/graph.h"

namespace lathe::test {

struct AttentionCheck {
  std::vector<DimBindings> sizes;  ///< one compilation for all sizes
  ObjectStore* store = nullptr;
  /// Also compile in f64 and without fusion. If false, the reference for rounding errors is the interpreter that
  /// rounds every value, which is stricter.
  bool thorough = true;
  double floor = 2e-6;  ///< minimum allowed error in f32, relative to the largest value; scaled for narrower floats
};

/// Checks that fused and unfused code agree with the interpreter: `graph(f64)` to 1e-11, and `graph({})`, in its own
/// dtype, with at most twice the error of the unfused code relative to the f64 interpreter.
void check_attention(const std::function<ir::Graph(std::optional<DType>)>& graph, const AttentionCheck& check);

}  // namespace lathe::test
