#include "frontend/ops.h"

#include "ir/ops/functional.h"

namespace lathe {

namespace {

template <class Make>
Tensor built(const Tensor& t, const Where& at, Make make) {
  const detail::Line line(t, at);
  return Tensor(make());
}

std::vector<ir::Value> values(std::span<const Tensor> tensors) {
  std::vector<ir::Value> result;
  for (const Tensor& t : tensors) result.push_back(t.value());
  return result;
}

/// A list of tensors has a first one, whose graph takes the op.
const Tensor& first(std::span<const Tensor> tensors, std::string_view op, const Where& at) {
  if (tensors.empty())
    throw UserError(Location(at), op, "no operands are given", "op_arity", "give at least one tensor");
  return tensors[0];
}

Tensor einsum_of(std::string_view equation, std::span<const Tensor> operands, const Where& at) {
  return built(first(operands, "einsum", at), at, [&] { return ir::einsum(equation, values(operands)); });
}
Tensor concat_of(std::span<const Tensor> parts, int dim, const Where& at) {
  return built(first(parts, "concat", at), at, [&] { return ir::concat(values(parts), dim); });
}
Tensor stack_of(std::span<const Tensor> parts, int dim, const Where& at) {
  return built(first(parts, "stack", at), at, [&] { return ir::stack(values(parts), dim); });
}

std::span<const Tensor> span_of(std::initializer_list<Tensor> list) { return {list.begin(), list.size()}; }

}  // namespace

Tensor exp(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::exp(a.value()); });
}
Tensor log(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::log(a.value()); });
}
Tensor sqrt(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::sqrt(a.value()); });
}
Tensor rsqrt(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::rsqrt(a.value()); });
}
Tensor sin(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::sin(a.value()); });
}
Tensor cos(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::cos(a.value()); });
}
Tensor tanh(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::tanh(a.value()); });
}
Tensor erf(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::erf(a.value()); });
}
Tensor abs(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::abs(a.value()); });
}
Tensor sign(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::sign(a.value()); });
}
Tensor floor(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::floor(a.value()); });
}
Tensor round(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::round(a.value()); });
}
Tensor relu(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::relu(a.value()); });
}
Tensor silu(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::silu(a.value()); });
}
Tensor sigmoid(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::sigmoid(a.value()); });
}
Tensor square(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::square(a.value()); });
}
Tensor reciprocal(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::reciprocal(a.value()); });
}
Tensor gelu(const Tensor& a, bool tanh_approximation, Where at) {
  return built(a, at, [&] { return ir::gelu(a.value(), tanh_approximation); });
}
Tensor clamp(const Tensor& a, double low, double high, Where at) {
  return built(a, at, [&] { return ir::clamp(a.value(), low, high); });
}
Tensor maximum(const Tensor& a, const Tensor& b, Where at) {
  return built(a, at, [&] { return ir::maximum(a.value(), b.value()); });
}
Tensor maximum(const Tensor& a, double b, Where at) {
  return built(a, at, [&] { return ir::maximum(a.value(), b); });
}
Tensor minimum(const Tensor& a, const Tensor& b, Where at) {
  return built(a, at, [&] { return ir::minimum(a.value(), b.value()); });
}
Tensor minimum(const Tensor& a, double b, Where at) {
  return built(a, at, [&] { return ir::minimum(a.value(), b); });
}
Tensor pow(const Tensor& a, const Tensor& b, Where at) {
  return built(a, at, [&] { return ir::pow(a.value(), b.value()); });
}
Tensor pow(const Tensor& a, double b, Where at) {
  return built(a, at, [&] { return ir::pow(a.value(), b); });
}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b, Where at) {
  return built(a, at, [&] { return ir::where(condition.value(), a.value(), b.value()); });
}
Tensor where(const Tensor& condition, const Tensor& a, double b, Where at) {
  return built(a, at, [&] { return ir::where(condition.value(), a.value(), b); });
}
Tensor where(const Tensor& condition, double a, const Tensor& b, Where at) {
  return built(b, at, [&] { return ir::where(condition.value(), a, b.value()); });
}
Tensor masked_fill(const Tensor& a, const Tensor& mask, double value, Where at) {
  return built(a, at, [&] { return ir::masked_fill(a.value(), mask.value(), value); });
}
Tensor tril(const Tensor& a, std::int64_t diagonal, Where at) {
  return built(a, at, [&] { return ir::tril(a.value(), diagonal); });
}
Tensor triu(const Tensor& a, std::int64_t diagonal, Where at) {
  return built(a, at, [&] { return ir::triu(a.value(), diagonal); });
}

Tensor matmul(const Tensor& a, const Tensor& b, Where at) {
  return built(a, at, [&] { return ir::matmul(a.value(), b.value()); });
}
Tensor linear(const Tensor& x, const Tensor& weight, Where at) {
  return built(x, at, [&] { return ir::linear(x.value(), weight.value()); });
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Where at) {
  return built(x, at, [&] { return ir::linear(x.value(), weight.value(), bias.value()); });
}
Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands, Where at) {
  return einsum_of(equation, span_of(operands), at);
}
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Where at) {
  return einsum_of(equation, operands, at);
}

Tensor gather(const Tensor& table, const Tensor& indices, int dim, Where at) {
  return built(table, at, [&] { return ir::gather(table.value(), indices.value(), dim); });
}
Tensor embedding(const Tensor& ids, const Tensor& table, Where at) {
  return built(table, at, [&] { return ir::gather(table.value(), ids.value(), 0); });
}
Tensor take_along(const Tensor& a, const Tensor& indices, int dim, Where at) {
  return built(a, at, [&] { return ir::take_along(a.value(), indices.value(), dim); });
}
Tensor concat(std::initializer_list<Tensor> parts, int dim, Where at) { return concat_of(span_of(parts), dim, at); }
Tensor concat(const std::vector<Tensor>& parts, int dim, Where at) { return concat_of(parts, dim, at); }
Tensor stack(std::initializer_list<Tensor> parts, int dim, Where at) { return stack_of(span_of(parts), dim, at); }
Tensor stack(const std::vector<Tensor>& parts, int dim, Where at) { return stack_of(parts, dim, at); }
Tensor pad(const Tensor& a, int dim, const Dim& low, const Dim& high, Where at) {
  return built(a, at, [&] { return ir::pad(a.value(), dim, low, high); });
}
Tensor one_hot(const Tensor& indices, const Dim& classes, DType dtype, Where at) {
  return built(indices, at, [&] { return ir::one_hot(indices.value(), classes, dtype); });
}

Tensor view_as_complex(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::view_as_complex(a.value()); });
}
Tensor view_as_real(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::view_as_real(a.value()); });
}
Tensor conj(const Tensor& a, Where at) {
  return built(a, at, [&] { return ir::conj(a.value()); });
}
Tensor polar(const Tensor& radius, const Tensor& angle, Where at) {
  return built(radius, at, [&] { return ir::polar(radius.value(), angle.value()); });
}

Tensor softmax(const Tensor& a, int dim, Where at) {
  return built(a, at, [&] { return ir::softmax(a.value(), dim); });
}
Tensor log_softmax(const Tensor& a, int dim, Where at) {
  return built(a, at, [&] { return ir::log_softmax(a.value(), dim); });
}
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Where at) {
  return built(x, at, [&] { return ir::layer_norm(x.value(), weight.value(), bias.value(), eps); });
}
Tensor rms_norm(const Tensor& x, double eps, Where at) {
  return built(x, at, [&] { return ir::rms_norm(x.value(), eps); });
}
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps, Where at) {
  return built(x, at, [&] { return ir::rms_norm(x.value(), weight.value(), eps); });
}
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, std::optional<std::int64_t> ignore_index,
                     double label_smoothing, Where at) {
  return built(logits, at,
               [&] { return ir::cross_entropy(logits.value(), targets.value(), ignore_index, label_smoothing); });
}
Tensor dropout(const Tensor& a, const Tensor& random_state, double p, Where at) {
  return built(a, at, [&] { return ir::dropout(a.value(), random_state.value(), p); });
}
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double scale,
                 bool causal, bool zero_masked, Where at) {
  std::optional<ir::Value> mask_value;
  if (mask) mask_value = mask->value();
  return built(
      q, at, [&] { return ir::attention(q.value(), k.value(), v.value(), mask_value, scale, causal, zero_masked); });
}
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, Where at) {
  return built(x, at, [&] { return ir::rope(x.value(), cos.value(), sin.value()); });
}

}  // namespace lathe
