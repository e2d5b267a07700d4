#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "frontend/tensor.h"

/// The functions of the DSL that are no more than their op: its operands, then its attributes. [labels] are those of
/// UserErrors. The test of ops writes them, from the lines of ir/ops/primitives/primitives.def and
/// ir/ops/composites/composites.def.
namespace lathe {

namespace detail {
/// The op of this name over the operands at the user's line.
Tensor op(std::string_view name, const Where& at, std::initializer_list<const Tensor*> operands,
          ir::Attributes attrs = {});
}  // namespace detail

/// The smaller of a and b, broadcast; NaN if either is. [dtype_match] [dtype_kind] [broadcast]
inline Tensor minimum(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("minimum", at, {&a, &b});
}
/// The larger of a and b, broadcast; NaN if either is. [dtype_match] [dtype_kind] [broadcast]
inline Tensor maximum(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("maximum", at, {&a, &b});
}
/// a to the power b, broadcast. [dtype_match] [dtype_kind] [broadcast]
inline Tensor pow(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("pow", at, {&a, &b});
}
/// The absolute value; its gradient at 0 is 0. [dtype_kind]
inline Tensor abs(const Tensor& a, Where at = Where::current()) { return detail::op("abs", at, {&a}); }
/// 1, -1 or, for 0 and NaN, a itself; its gradient is 0. [dtype_kind]
inline Tensor sign(const Tensor& a, Where at = Where::current()) { return detail::op("sign", at, {&a}); }
/// The largest whole number not above a; its gradient is 0. [dtype_kind]
inline Tensor floor(const Tensor& a, Where at = Where::current()) { return detail::op("floor", at, {&a}); }
/// The nearest whole number, halves to even; its gradient is 0. [dtype_kind]
inline Tensor round(const Tensor& a, Where at = Where::current()) { return detail::op("round", at, {&a}); }
/// e to the power a. [dtype_kind]
inline Tensor exp(const Tensor& a, Where at = Where::current()) { return detail::op("exp", at, {&a}); }
/// The natural logarithm. [dtype_kind]
inline Tensor log(const Tensor& a, Where at = Where::current()) { return detail::op("log", at, {&a}); }
/// The square root. [dtype_kind]
inline Tensor sqrt(const Tensor& a, Where at = Where::current()) { return detail::op("sqrt", at, {&a}); }
/// 1 / sqrt(a). [dtype_kind]
inline Tensor rsqrt(const Tensor& a, Where at = Where::current()) { return detail::op("rsqrt", at, {&a}); }
/// The sine of an angle in radians. [dtype_kind]
inline Tensor sin(const Tensor& a, Where at = Where::current()) { return detail::op("sin", at, {&a}); }
/// The cosine of an angle in radians. [dtype_kind]
inline Tensor cos(const Tensor& a, Where at = Where::current()) { return detail::op("cos", at, {&a}); }
/// The hyperbolic tangent. [dtype_kind]
inline Tensor tanh(const Tensor& a, Where at = Where::current()) { return detail::op("tanh", at, {&a}); }
/// The error function. [dtype_kind]
inline Tensor erf(const Tensor& a, Where at = Where::current()) { return detail::op("erf", at, {&a}); }
/// a where the condition is true, b elsewhere; all three broadcast. [dtype_kind] [dtype_match] [broadcast]
inline Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("where", at, {&condition, &a, &b});
}
/// Pairs of reals in the last dim as complex numbers. [dtype_kind] [complex_pair]
inline Tensor view_as_complex(const Tensor& a, Where at = Where::current()) {
  return detail::op("view_as_complex", at, {&a});
}
/// Complex numbers as pairs of reals in a new last dim. [dtype_kind]
inline Tensor view_as_real(const Tensor& a, Where at = Where::current()) {
  return detail::op("view_as_real", at, {&a});
}
/// The complex conjugate. [dtype_kind]
inline Tensor conj(const Tensor& a, Where at = Where::current()) { return detail::op("conj", at, {&a}); }
/// radius * (cos(angle) + i sin(angle)), broadcast. [dtype_match] [dtype_kind] [broadcast]
inline Tensor polar(const Tensor& radius, const Tensor& angle, Where at = Where::current()) {
  return detail::op("polar", at, {&radius, &angle});
}
/// The product of matrices, batched and broadcast as torch.matmul; vectors lose their dim.
/// [dtype_kind] [dtype_match] [matmul_rank] [matmul_inner] [matmul_batch]
inline Tensor matmul(const Tensor& a, const Tensor& b, Where at = Where::current()) {
  return detail::op("matmul", at, {&a, &b});
}
/// x [.., in] times the transpose of weight [out, in], plus bias [out] where it is given.
/// [dtype_kind] [dtype_match] [linear_rank] [linear_weight] [linear_inner] [linear_bias]
inline Tensor linear(const Tensor& x, const Tensor& weight, Where at = Where::current()) {
  return detail::op("linear", at, {&x, &weight});
}
inline Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Where at = Where::current()) {
  return detail::op("linear", at, {&x, &weight, &bias});
}
/// exp(a) / sum(exp(a)) along a dim, without overflow; zero_masked: 0 where all is -inf. [dtype_kind] [dim_range]
inline Tensor softmax(const Tensor& a, DimIndex dim, bool zero_masked = false, Where at = Where::current()) {
  return detail::op("softmax", at, {&a}, {{"dim", from_front(a, dim)}, {"zero_masked", zero_masked}});
}
/// log(softmax(a)) along a dim, without overflow. [dtype_kind] [dim_range]
inline Tensor log_softmax(const Tensor& a, DimIndex dim, Where at = Where::current()) {
  return detail::op("log_softmax", at, {&a}, {{"dim", from_front(a, dim)}});
}
/// (x - mean) / sqrt(variance + eps) over the last dim [* weight [+ bias]].
/// [dtype_kind] [dtype_match] [norm_rank] [norm_eps] [norm_weight]
inline Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5,
                         Where at = Where::current()) {
  return detail::op("layer_norm", at, {&x, &weight, &bias}, {{"eps", eps}});
}
/// x / sqrt(mean of x*x + eps) over the last dim [* weight].
/// [dtype_kind] [dtype_match] [norm_rank] [norm_eps] [norm_weight]
inline Tensor rms_norm(const Tensor& x, double eps = 1e-5, Where at = Where::current()) {
  return detail::op("rms_norm", at, {&x}, {{"eps", eps}});
}
inline Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-5, Where at = Where::current()) {
  return detail::op("rms_norm", at, {&x, &weight}, {{"eps", eps}});
}
/// max(a, 0). [dtype_kind]
inline Tensor relu(const Tensor& a, Where at = Where::current()) { return detail::op("relu", at, {&a}); }
/// a times the normal distribution function of a. [dtype_kind] [gelu_approximate]
inline Tensor gelu(const Tensor& a, bool tanh_approximation = false, Where at = Where::current()) {
  return detail::op("gelu", at, {&a}, {{"approximate", std::string(tanh_approximation ? "tanh" : "none")}});
}
/// a * sigmoid(a). [dtype_kind]
inline Tensor silu(const Tensor& a, Where at = Where::current()) { return detail::op("silu", at, {&a}); }
/// 1 / (1 + exp(-a)). [dtype_kind]
inline Tensor sigmoid(const Tensor& a, Where at = Where::current()) { return detail::op("sigmoid", at, {&a}); }
/// log(1 + exp(a)). [dtype_kind]
inline Tensor softplus(const Tensor& a, Where at = Where::current()) { return detail::op("softplus", at, {&a}); }
/// a * a. [dtype_kind]
inline Tensor square(const Tensor& a, Where at = Where::current()) { return detail::op("square", at, {&a}); }
/// 1 / a. [dtype_kind]
inline Tensor reciprocal(const Tensor& a, Where at = Where::current()) { return detail::op("reciprocal", at, {&a}); }
/// a brought into low .. high. [dtype_kind]
inline Tensor clamp(const Tensor& a, const Number& low, const Number& high, Where at = Where::current()) {
  return detail::op("clamp", at, {&a}, {{"low", low}, {"high", high}});
}
/// Value where the mask is true, a elsewhere; broadcast. [masked_fill_mask] [masked_fill_value] [broadcast]
inline Tensor masked_fill(const Tensor& a, const Tensor& mask, const Number& value, Where at = Where::current()) {
  return detail::op("masked_fill", at, {&a, &mask}, {{"value", value}});
}
/// a on and below a diagonal of the last two dims, 0 above. [dtype_kind] [triangle_rank]
inline Tensor tril(const Tensor& a, std::int64_t diagonal = 0, Where at = Where::current()) {
  return detail::op("tril", at, {&a}, {{"diagonal", diagonal}});
}
/// a on and above a diagonal of the last two dims, 0 below. [dtype_kind] [triangle_rank]
inline Tensor triu(const Tensor& a, std::int64_t diagonal = 0, Where at = Where::current()) {
  return detail::op("triu", at, {&a}, {{"diagonal", diagonal}});
}
/// 1 where the position in the new last dim is the index; all 0 for an index out of range.
/// [dtype_kind] [one_hot_classes]
inline Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype, Where at = Where::current()) {
  return detail::op("one_hot", at, {&indices}, {{"classes", classes}, {"dtype", dtype}});
}
/// Rotary embedding in the half-split layout: x * cos + [-x2, x1] * sin.
/// [dtype_kind] [dtype_match] [rope_even] [rope_shape]
inline Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Where at = Where::current()) {
  return detail::op("rope", at, {&x, &cos, &sin});
}
/// q * scale, where each block of neighbours in the last dim of q shares one of scales [.., blocks].
/// [dtype_kind] [dequantize_scales]
inline Tensor dequantize(const Tensor& q, const Tensor& scales, Where at = Where::current()) {
  return detail::op("dequantize", at, {&q, &scales});
}

}  // namespace lathe
