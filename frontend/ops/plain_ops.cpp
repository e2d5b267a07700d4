// This file is generated like plain_ops.h.
#include "frontend/ops/plain_ops.h"

#include "ir/tensor/op/attribute.h"

namespace lathe {

Tensor minimum(const Tensor& a, const Tensor& b, Where at) { return detail::op("minimum", at, {&a, &b}); }
Tensor maximum(const Tensor& a, const Tensor& b, Where at) { return detail::op("maximum", at, {&a, &b}); }
Tensor pow(const Tensor& a, const Tensor& b, Where at) { return detail::op("pow", at, {&a, &b}); }
Tensor abs(const Tensor& a, Where at) { return detail::op("abs", at, {&a}); }
Tensor sign(const Tensor& a, Where at) { return detail::op("sign", at, {&a}); }
Tensor floor(const Tensor& a, Where at) { return detail::op("floor", at, {&a}); }
Tensor round(const Tensor& a, Where at) { return detail::op("round", at, {&a}); }
Tensor exp(const Tensor& a, Where at) { return detail::op("exp", at, {&a}); }
Tensor log(const Tensor& a, Where at) { return detail::op("log", at, {&a}); }
Tensor sqrt(const Tensor& a, Where at) { return detail::op("sqrt", at, {&a}); }
Tensor rsqrt(const Tensor& a, Where at) { return detail::op("rsqrt", at, {&a}); }
Tensor sin(const Tensor& a, Where at) { return detail::op("sin", at, {&a}); }
Tensor cos(const Tensor& a, Where at) { return detail::op("cos", at, {&a}); }
Tensor tanh(const Tensor& a, Where at) { return detail::op("tanh", at, {&a}); }
Tensor erf(const Tensor& a, Where at) { return detail::op("erf", at, {&a}); }
Tensor bitwise_and(const Tensor& a, const Tensor& b, Where at) { return detail::op("bitwise_and", at, {&a, &b}); }
Tensor bitwise_or(const Tensor& a, const Tensor& b, Where at) { return detail::op("bitwise_or", at, {&a, &b}); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b, Where at) { return detail::op("bitwise_xor", at, {&a, &b}); }
Tensor shift_left(const Tensor& a, const Tensor& b, Where at) { return detail::op("shift_left", at, {&a, &b}); }
Tensor shift_right_logical(const Tensor& a, const Tensor& b, Where at) {
  return detail::op("shift_right_logical", at, {&a, &b});
}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, Where at) {
  return detail::op("where", at, {&condition, &a, &b});
}
Tensor cholesky(const Tensor& a, Where at) { return detail::op("cholesky", at, {&a}); }
Tensor view_as_complex(const Tensor& a, Where at) { return detail::op("view_as_complex", at, {&a}); }
Tensor view_as_real(const Tensor& a, Where at) { return detail::op("view_as_real", at, {&a}); }
Tensor conj(const Tensor& a, Where at) { return detail::op("conj", at, {&a}); }
Tensor polar(const Tensor& radius, const Tensor& angle, Where at) {
  return detail::op("polar", at, {&radius, &angle});
}
Tensor matmul(const Tensor& a, const Tensor& b, Where at) { return detail::op("matmul", at, {&a, &b}); }
Tensor linear(const Tensor& x, const Tensor& weight, Where at) { return detail::op("linear", at, {&x, &weight}); }
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Where at) {
  return detail::op("linear", at, {&x, &weight, &bias});
}
Tensor softmax(const Tensor& a, DimIndex dim, bool zero_masked, Where at) {
  return detail::op("softmax", at, {&a}, {{"dim", from_front(a, dim)}, {"zero_masked", zero_masked}});
}
Tensor log_softmax(const Tensor& a, DimIndex dim, Where at) {
  return detail::op("log_softmax", at, {&a}, {{"dim", from_front(a, dim)}});
}
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Where at) {
  return detail::op("layer_norm", at, {&x, &weight, &bias}, {{"eps", eps}});
}
Tensor rms_norm(const Tensor& x, double eps, Where at) { return detail::op("rms_norm", at, {&x}, {{"eps", eps}}); }
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps, Where at) {
  return detail::op("rms_norm", at, {&x, &weight}, {{"eps", eps}});
}
Tensor relu(const Tensor& a, Where at) { return detail::op("relu", at, {&a}); }
Tensor gelu(const Tensor& a, bool tanh_approximation, Where at) {
  return detail::op("gelu", at, {&a}, {{"approximate", std::string(tanh_approximation ? "tanh" : "none")}});
}
Tensor silu(const Tensor& a, Where at) { return detail::op("silu", at, {&a}); }
Tensor sigmoid(const Tensor& a, Where at) { return detail::op("sigmoid", at, {&a}); }
Tensor softplus(const Tensor& a, Where at) { return detail::op("softplus", at, {&a}); }
Tensor square(const Tensor& a, Where at) { return detail::op("square", at, {&a}); }
Tensor reciprocal(const Tensor& a, Where at) { return detail::op("reciprocal", at, {&a}); }
Tensor log1p(const Tensor& a, Where at) { return detail::op("log1p", at, {&a}); }
Tensor expm1(const Tensor& a, Where at) { return detail::op("expm1", at, {&a}); }
Tensor clamp(const Tensor& a, const Number& low, const Number& high, Where at) {
  return detail::op("clamp", at, {&a}, {{"low", low}, {"high", high}});
}
Tensor bitwise_not(const Tensor& a, Where at) { return detail::op("bitwise_not", at, {&a}); }
Tensor shift_right(const Tensor& a, const Tensor& b, Where at) { return detail::op("shift_right", at, {&a, &b}); }
Tensor masked_fill(const Tensor& a, const Tensor& mask, const Number& value, Where at) {
  return detail::op("masked_fill", at, {&a, &mask}, {{"value", value}});
}
Tensor tril(const Tensor& a, std::int64_t diagonal, Where at) {
  return detail::op("tril", at, {&a}, {{"diagonal", diagonal}});
}
Tensor triu(const Tensor& a, std::int64_t diagonal, Where at) {
  return detail::op("triu", at, {&a}, {{"diagonal", diagonal}});
}
Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype, Where at) {
  return detail::op("one_hot", at, {&indices}, {{"classes", classes}, {"dtype", dtype}});
}
Tensor straight_through(const Tensor& value, const Tensor& path, Where at) {
  return detail::op("straight_through", at, {&value, &path});
}
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Where at) {
  return detail::op("rope", at, {&x, &cos, &sin});
}
Tensor dequantize(const Tensor& q, const Tensor& scales, Where at) {
  return detail::op("dequantize", at, {&q, &scales});
}

}  // namespace lathe
