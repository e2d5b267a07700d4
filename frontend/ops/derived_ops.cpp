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
  return (-a).argmax(dim);
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
  return sqrt((a * a).sum(axes, keepdim));
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
  return abs(a) < std::numeric_limits<double>::infinity();
}

Tensor maximum(const Number& a, const Tensor& b, Where at) { return maximum(b, a, at); }
Tensor minimum(const Number& a, const Tensor& b, Where at) { return minimum(b, a, at); }

Tensor pow(const Number& a, const Tensor& b, Where at) {
  const Composed composed("pow", at, {&b});
  return pow(Tensor(ir::constant(b.builder(), a, b.dtype())), b);
}

Tensor view(const Tensor& a, const Shape& shape, Where at) { return a.view(shape, at); }
Tensor reshape(const Tensor& a, const Shape& shape, Where at) { return a.reshape(shape, at); }
Tensor transpose(const Tensor& a, DimIndex dim0, DimIndex dim1, Where at) { return a.transpose(dim0, dim1, at); }
Tensor permute(const Tensor& a, const std::vector<std::int64_t>& dims, Where at) { return a.permute(dims, at); }
Tensor expand(const Tensor& a, const Shape& shape, Where at) { return a.expand(shape, at); }
Tensor unsqueeze(const Tensor& a, DimIndex dim, Where at) { return a.unsqueeze(dim, at); }
Tensor squeeze(const Tensor& a, DimIndex dim, Where at) { return a.squeeze(dim, at); }
Tensor flatten(const Tensor& a, DimIndex first, DimIndex last, Where at) { return a.flatten(first, last, at); }
Tensor select(const Tensor& a, DimIndex dim, const Dim& index, Where at) { return a.select(dim, index, at); }
std::vector<Tensor> split(const Tensor& a, const Dim& size, DimIndex dim, Where at) { return a.split(size, dim, at); }
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
  const Dim size = a.size(dim);
  return concat({a.slice(dim, size - shift, size), a.slice(dim, 0, size - shift)}, dim);
}

Tensor outer(const Tensor& a, const Tensor& b, Where at) {
  const Composed composed("outer", at, {&a, &b});
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
