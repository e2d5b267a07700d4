#pragma once

namespace lathe::test {

/// Attention weights over 4 features, with a parameter, a state and source lines.
inline constexpr const char* small_program = R"(graph @small(
  input %x: f32[n, d=4] loc("small.cpp":3),
  parameter %w: f32[d=4, d=4] loc("small.cpp":4),
  state %runs: i64[]
) {
  %1 = linear %x, %w                        loc("small.cpp":5 in "layer.0")
  %2 = transpose %1 {dim0=0, dim1=1}        loc("small.cpp":6 in "layer.0")
  %scores = matmul %1, %2                   loc("small.cpp":7 in "layer.0")
  %weights = softmax %scores {dim=-1}       loc("small.cpp":8)
  %one = constant {dtype=i64, shape=[], values=[1]}
  %next = add %runs, %one
  output "weights" %weights
  update %runs <- %next
}
)";

}  // namespace lathe::test
