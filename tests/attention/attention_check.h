#pragma once

#include <functional>
#include <optional>

#include "codegen/llvm/jit.h"
#include "ir/tensor/graph.h"

namespace lathe::test {

struct AttentionCheck {
  std::vector<DimBindings> sizes;  ///< one compilation serves all
  ObjectStore* store = nullptr;
  /// Compile in f64 and without fusion as well. Without: the reference of what rounding costs is the interpreter
  /// that rounds every value, which is stricter.
  bool thorough = true;
  double floor = 2e-6;  ///< of the error in f32, relative to the largest value; narrower floats allow what they are
};

/// Checks that fused and unfused code give what the interpreter gives: `graph(f64)` to 1e-11, and `graph({})`, in
/// its own dtype, with an error against the interpreter in f64 of at most twice that of the unfused code.
void check_attention(const std::function<ir::Graph(std::optional<DType>)>& graph, const AttentionCheck& check);

}  // namespace lathe::test
