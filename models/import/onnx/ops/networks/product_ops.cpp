#include <algorithm>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

Results matmul_op(const OpCall& call) { return {matmul(call.tensor(0), call.tensor(1))}; }

/// alpha a b + beta c, with transposed operands on request. A transposed b [out, in] with a bias [out] is linear.
Results gemm(const OpCall& call) {
  Tensor a = call.tensor(0), b = call.tensor(1);
  const double alpha = call.real("alpha", 1), beta = call.real("beta", 1);
  if (call.flag("transA", false)) a = a.transpose(0, 1);
  const bool is_linear = call.flag("transB", false);
  const auto scaled = [](const Tensor& x, double factor) { return factor == 1 ? x : x * factor; };
  const bool has_bias = call.has(2) && beta != 0;
  if (is_linear && has_bias && alpha == 1 && call.operand(2).rank() == 1 && !call.operand(2).shape()[0].is(1))
    return {linear(a, b, scaled(call.tensor(2), beta))};
  const Tensor product = scaled(is_linear ? linear(a, b) : matmul(a, b), alpha);
  return {has_bias ? product + scaled(call.tensor(2), beta) : product};
}

Results einsum_op(const OpCall& call) {
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  return {einsum(equation, call.tensors())};
}

/// Products of 8-bit integers are exact in f64 for up to 2^37 terms.
Results matmul_integer(const OpCall& call) {
  const auto shifted = [&](std::size_t i, bool is_per_row) {
    const Tensor x = call.tensor(i).to(f64);
    if (!call.has(i + 2)) return x;
    const Tensor zero = call.tensor(i + 2).to(f64);
    return x - (zero.rank() == 1 && is_per_row && !zero.size(0).is(1) ? zero.unsqueeze(-1) : zero);
  };
  return {matmul(shifted(0, true), shifted(1, false)).to(i32)};
}

}  // namespace

std::span<const OpRecord> product_ops() {
  static constexpr OpRecord records[] = {
      {"MatMul", 1, latest, "", matmul_op},
      {"Gemm", 7, latest, "alpha beta transA transB", gemm},
      {"Einsum", 12, latest, "equation", einsum_op},
      {"MatMulInteger", 10, latest, "", matmul_integer},
  };
  return records;
}

}  // namespace lathe::onnx
