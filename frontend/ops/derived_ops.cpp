#include "frontend/ops/derived_ops.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "frontend/built.h"
#include "frontend/graph.h"
#include "ir/ops/functional/functional.h"
#include "ir/support/error.h"

namespace lathe {

using detail::built;
using detail::Composed;

Tensor sum(const Tensor& a, const Axes& axes, Flag keepdim, Where at) { return a.sum(axes, keepdim, at); }
Tensor mean(const Tensor& a, const Axes& axes, Flag keepdim, Where at) { return a.mean(axes, keepdim, at); }
Tensor max(const Tensor& a, const Axes& axes, Flag keepdim, Where at) { return a.max(axes, keepdim, at); }
Tensor min(const Tensor& a, const Axes& axes, Flag keepdim, Where at) { return a.min(axes, keepdim, at); }
Tensor var(const Tensor& a, const Axes& axes, Flag keepdim, std::int64_t correction, Where at) {
  return a.var(axes, keepdim, correction, at);
}
Tensor logsumexp(const Tensor& a, DimIndex dim, Flag keepdim, Where at) { return a.logsumexp(dim, keepdim, at); }
Tensor argmax(const Tensor& a, DimIndex dim, Where at) { return a.argmax(dim, at); }

Tensor prod(const Tensor& a, const Axes& axes, Flag keepdim, Where at) { return a.prod(axes, keepdim, at); }

Tensor argmin(const Tensor& a, DimIndex dim, Where at) {
  const Composed composed("argmin", at, {&a});
  return (is_integer(a.dtype()) ? bitwise_not(a) : -a).argmax(dim);  // -a of the lowest integer is itself
}

Tensor any(const Tensor& a, const Axes& axes, Flag keepdim, Where at) {
  const Composed composed("any", at, {&a});
  return a.to(i64).sum(axes, keepdim) > 0;
}

Tensor all(const Tensor& a, const Axes& axes, Flag keepdim, Where at) {
  const Composed composed("all", at, {&a});
  return (~a).to(i64).sum(axes, keepdim) == 0;
}

Tensor norm(const Tensor& a, const Axes& axes, Flag keepdim, Where at) {
  const Composed composed("norm", at, {&a});
  const Tensor squares = (a * a).sum(axes, keepdim);
  const Tensor is_positive = squares > 0;  // the derivative of the root at 0 is infinite
  return where(is_positive, sqrt(where(is_positive, squares, 1)), squares);
}

Tensor normalize(const Tensor& a, DimIndex dim, double eps, Where at) {
  const Composed composed("normalize", at, {&a});
  return a / maximum(norm(a, Axes(dim.value), true), eps);
}

Tensor ceil(const Tensor& a, Where at) {
  const Composed composed("ceil", at, {&a});
  return -floor(-a);
}

Tensor trunc(const Tensor& a, Where at) {
  const Composed composed("trunc", at, {&a});
  return sign(a) * floor(abs(a));
}

Tensor isnan(const Tensor& a, Where at) {
  const Composed composed("isnan", at, {&a});
  return a != a;
}

Tensor isfinite(const Tensor& a, Where at) {
  const Composed composed("isfinite", at, {&a});
  if (!is_float(a.dtype()) && !is_complex(a.dtype())) return a == a;
  return abs(a) < std::numeric_limits<double>::infinity();
}

Tensor maximum(const Number& a, const Tensor& b, Where at) { return maximum(b, a, at); }
Tensor minimum(const Number& a, const Tensor& b, Where at) { return minimum(b, a, at); }

Tensor pow(const Number& a, const Tensor& b, Where at) {
  const Composed composed("pow", at, {&b});
  return pow(Tensor(ir::constant(b.builder(), a, b.dtype())), b);
}

Tensor detach(const Tensor& a, Where at) { return a.detach(at); }

Tensor view(const Tensor& a, const Shape& shape, Where at) { return a.view(shape, at); }
Tensor reshape(const Tensor& a, const Shape& shape, Where at) { return a.reshape(shape, at); }
Tensor transpose(const Tensor& a, DimIndex dim0, DimIndex dim1, Where at) { return a.transpose(dim0, dim1, at); }
Tensor permute(const Tensor& a, const std::vector<std::int64_t>& dims, Where at) { return a.permute(dims, at); }
Tensor expand(const Tensor& a, const Shape& shape, Where at) { return a.expand(shape, at); }
Tensor unsqueeze(const Tensor& a, DimIndex dim, Where at) { return a.unsqueeze(dim, at); }
Tensor squeeze(const Tensor& a, DimIndex dim, Where at) { return a.squeeze(dim, at); }
Tensor flatten(const Tensor& a, DimIndex first, DimIndex last, Where at) { return a.flatten(first, last, at); }
Tensor slice(const Tensor& a, DimIndex dim, const Dim& start, const Dim& stop, std::int64_t step, Where at) {
  return a.slice(dim, start, stop, step, at);
}
Tensor slice(const Tensor& a, DimIndex dim, const Dim& start, Where at) { return a.slice(dim, start, at); }
Tensor select(const Tensor& a, DimIndex dim, const Dim& index, Where at) { return a.select(dim, index, at); }
std::vector<Tensor> split(const Tensor& a, const Dim& size, DimIndex dim, Where at) { return a.split(size, dim, at); }
std::vector<Tensor> split(const Tensor& a, std::initializer_list<Dim> sizes, DimIndex dim, Where at) {
  return a.split(sizes, dim, at);
}
std::vector<Tensor> chunk(const Tensor& a, std::int64_t chunks, DimIndex dim, Where at) {
  return a.chunk(chunks, dim, at);
}
Tensor diagonal(const Tensor& a, DimIndex dim0, DimIndex dim1, Where at) { return a.diagonal(dim0, dim1, at); }
Tensor repeat_interleave(const Tensor& a, std::int64_t times, DimIndex dim, Where at) {
  return a.repeat_interleave(times, dim, at);
}

Tensor zeros_like(const Tensor& a, Where at) {
  const Composed composed("zeros_like", at, {&a});
  return Tensor(ir::full(a.builder(), a.shape(), 0, a.dtype()));
}

Tensor ones_like(const Tensor& a, Where at) {
  const Composed composed("ones_like", at, {&a});
  return Tensor(ir::full(a.builder(), a.shape(), 1, a.dtype()));
}

Tensor flip(const Tensor& a, DimIndex dim, Where at) {
  return built("flip", at, [&](const ir::Value& value) { return ir::flip(value, dim); }, a);
}

Tensor roll(const Tensor& a, const Dim& shift, DimIndex dim, Where at) {
  const Composed composed("roll", at, {&a});
  const Dim size = a.size(dim).unnamed();
  const std::optional<std::int64_t> number = shift.value(), count = size.value();
  Dim cut = number.value_or(0) < 0 ? Dim(0) - shift : size - shift;
  if (number && count) cut = *count == 0 ? 0 : ((-*number % *count) + *count) % *count;
  if (cut.is(0)) return a;
  return concat({a.slice(dim, cut, size), a.slice(dim, 0, cut)}, dim);
}

Tensor outer(const Tensor& a, const Tensor& b, Where at) {
  const Composed composed("outer", at, {&a, &b});
  for (const Tensor* factor : {&a, &b})
    if (factor->rank() != 1)
      throw UserError(detail::line_of(a.builder(), at), "outer",
                      fmt::format("{} is not a vector", factor->value().type().to_string()), "outer_rank",
                      "flatten it, or write the product as a.unsqueeze(-1) * b");
  return a.unsqueeze(1) * b.unsqueeze(0);
}

Tensor layer_norm(const Tensor& x, double eps, Where at) {
  return detail::op("layer_norm", at, {&x}, {{"eps", eps}});
}

Tensor dropout(const Tensor& a, double p, Where at) { return dropout(a, a.graph(at).random_state(at), p, at); }

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Causal& causal, Where at) {
  const Composed composed("attention", at, {&q, &k, &v});
  const std::optional<std::int64_t> size = q.size(-1).value();
  if (!size)
    throw UserError(Location(at), "attention",
                    fmt::format("the size of a head, {}, is not known", q.size(-1).to_string()), "attention_scale",
                    "give the scale: attention(q, k, v, mask, scale, causal)");
  return attention(q, k, v, std::nullopt, 1 / std::sqrt(static_cast<double>(*size)), causal);
}

}  // namespace lathe
