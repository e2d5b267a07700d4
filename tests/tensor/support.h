#pragma once

#include <string>
#include <string_view>

#include "ir/support/error.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/parser.h"

/// Shared code of the tensor IR tests.
namespace lathe::ir::test {

/// Returns the text of the Error that `action` throws; "no error" if it throws none. Other exceptions, including
/// InternalError, pass through and fail the test.
template <class Action>
std::string error_text(Action&& action) {
  try {
    action();
  } catch (const ParseError& e) {
    return e.what();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

inline const Op& op(std::string_view name) {
  const Op* found = find_op(name);
  LATHE_ASSERT(found);
  return *found;
}

/// A hand-written multi-head attention; the text uses most of the grammar.
inline constexpr std::string_view attention_text = R"(// Multi-head attention, as in the README.
graph @mha(
  input %x: f32[nbatches, n_seq, d_model=512]  loc("mha.cpp":10),
  input %mask: bool[nbatches, 1, 1, n_seq],
  parameter %W_q: f32[d_model=512, d_model=512] loc("mha.cpp":11 in "encoder.0.self"),
  state %step: i64[]
) {
  %1 = linear %x, %W_q : f32[nbatches, n_seq, d_model=512]  loc("mha.cpp":14)
  %q = view %1 {shape=[nbatches, n_seq, h=8, d_k=64]} loc("mha.cpp":14 in "encoder.0.self")
  %3 = transpose %q {dim0=1, dim1=2} : f32[nbatches, h=8, n_seq, d_k=64] strided  loc(gradient "mha.cpp":14)
  %4 = transpose %3 {dim0=-2, dim1=-1}
  %5 = matmul %3, %4 : f32[nbatches, h=8, n_seq, n_seq]
  %6 = constant {dtype=f32, shape=[], values=[8.0]}
  %7 = div %5, %6
  %8 = masked_fill %7, %mask {value=-1e9} name("masked scores")
  %9 = softmax %8 {dim=-1}
  %10 = constant {dtype=i64, shape=[], values=[1.0]}
  %11 = add %step, %10
  output "weights" %9
  update %step <- %11
}
)";

}  // namespace lathe::ir::test
