#include <cmath>

#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

namespace {

/// Functions of one operand and no attributes, as records of one line each.
template <Tensor (*function)(const Tensor&, Where)>
Results unary(const OpCall& call) {
  return {function(call.tensor(0), Where::current())};
}

Results reciprocal_op(const OpCall& call) { return {reciprocal(call.tensor(0))}; }

template <class Op>
Results wider(const OpCall& call, const Op& op) {
  return {in_wider_float(op, call.tensor(0))};
}

Results tangent(const OpCall& call) {
  return wider(call, [](const Tensor& x) { return x.sin() / x.cos(); });
}

/// (e^x - e^-x) / 2 without cancellation near 0, and without overflow where the result is finite.
Results sinh_op(const OpCall& call) {
  return wider(call, [](const Tensor& x) {
    const Tensor root = (x.abs() * 0.5).exp();
    const Tensor large = (root * 0.5) * root * x.sign(), small = (x.expm1() - (-x).expm1()) * 0.5;
    return where(x.abs() > 20.0, large, small);
  });
}

Results cosh_op(const OpCall& call) {
  return wider(call, [](const Tensor& x) {
    const Tensor root = (x.abs() * 0.5).exp(), inverse = (-x.abs()).exp();
    return (root * 0.5) * root + inverse * 0.5;
  });
}

/// log(|x| + sqrt(x^2 + 1)) with the sign of x; for large x, x^2 would overflow.
Results asinh_op(const OpCall& call) {
  return wider(call, [](const Tensor& x) {
    const Tensor a = x.abs(), capped = minimum(a, 1e8), square = capped * capped;
    const Tensor small = (capped + square / ((square + 1.0).sqrt() + 1.0)).log1p();
    return where(a > 1e8, a.log() + std::log(2.0), small) * x.sign();
  });
}

/// log(x + sqrt(x^2 - 1)), accurate near 1.
Results acosh_op(const OpCall& call) {
  return wider(call, [](const Tensor& x) {
    const Tensor t = minimum(x, 1e8) - 1.0;
    return where(x > 1e8, x.log() + std::log(2.0), (t + (t * 2.0 + t * t).sqrt()).log1p());
  });
}

/// log((1 + x) / (1 - x)) / 2
Results atanh_op(const OpCall& call) {
  return wider(call, [](const Tensor& x) { return (x.log1p() - (-x).log1p()) * 0.5; });
}

}  // namespace

std::span<const OpRecord> function_ops() {
  static constexpr OpRecord records[] = {
      {"Exp", 6, latest, "", unary<exp>},   {"Log", 6, latest, "", unary<log>},
      {"Sqrt", 6, latest, "", unary<sqrt>}, {"Reciprocal", 6, latest, "", reciprocal_op},
      {"Erf", 9, latest, "", unary<erf>},   {"Floor", 6, latest, "", unary<floor>},
      {"Ceil", 6, latest, "", unary<ceil>}, {"Round", 11, latest, "", unary<round>},
      {"Sin", 7, latest, "", unary<sin>},   {"Cos", 7, latest, "", unary<cos>},
      {"Tan", 7, latest, "", tangent},      {"Sinh", 9, latest, "", sinh_op},
      {"Cosh", 9, latest, "", cosh_op},     {"Asinh", 9, latest, "", asinh_op},
      {"Acosh", 9, latest, "", acosh_op},   {"Atanh", 9, latest, "", atanh_op},
      {"Tanh", 6, latest, "", unary<tanh>},
  };
  return records;
}

}  // namespace lathe::onnx
