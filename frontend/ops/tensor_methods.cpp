#include "frontend/built.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/ops.h"
#include "ir/ops/functional/functional.h"

/// Methods of Tensor that are second forms of functions.
namespace lathe {

Tensor Tensor::operator[](const RowIndex& index) const {
  return index.indices ? lathe::gather(*this, *index.indices, 0, index.at) : select(0, index.position, index.at);
}

Tensor Tensor::prod(const Axes& axes, Flag keepdim, Where at) const {
  return detail::built("prod", at, [&](auto& a) { return ir::prod(a, axes.dims, keepdim); }, *this);
}
Tensor Tensor::argmin(DimIndex dim, Where at) const { return lathe::argmin(*this, dim, at); }
Tensor Tensor::any(const Axes& axes, Flag keepdim, Where at) const { return lathe::any(*this, axes, keepdim, at); }
Tensor Tensor::all(const Axes& axes, Flag keepdim, Where at) const { return lathe::all(*this, axes, keepdim, at); }
Tensor Tensor::norm(const Axes& axes, Flag keepdim, Where at) const { return lathe::norm(*this, axes, keepdim, at); }

Tensor Tensor::abs(Where at) const { return lathe::abs(*this, at); }
Tensor Tensor::sign(Where at) const { return lathe::sign(*this, at); }
Tensor Tensor::floor(Where at) const { return lathe::floor(*this, at); }
Tensor Tensor::ceil(Where at) const { return lathe::ceil(*this, at); }
Tensor Tensor::round(Where at) const { return lathe::round(*this, at); }
Tensor Tensor::trunc(Where at) const { return lathe::trunc(*this, at); }
Tensor Tensor::exp(Where at) const { return lathe::exp(*this, at); }
Tensor Tensor::expm1(Where at) const { return lathe::expm1(*this, at); }
Tensor Tensor::log(Where at) const { return lathe::log(*this, at); }
Tensor Tensor::log1p(Where at) const { return lathe::log1p(*this, at); }
Tensor Tensor::sqrt(Where at) const { return lathe::sqrt(*this, at); }
Tensor Tensor::rsqrt(Where at) const { return lathe::rsqrt(*this, at); }
Tensor Tensor::square(Where at) const { return lathe::square(*this, at); }
Tensor Tensor::reciprocal(Where at) const { return lathe::reciprocal(*this, at); }
Tensor Tensor::sin(Where at) const { return lathe::sin(*this, at); }
Tensor Tensor::cos(Where at) const { return lathe::cos(*this, at); }
Tensor Tensor::tanh(Where at) const { return lathe::tanh(*this, at); }
Tensor Tensor::erf(Where at) const { return lathe::erf(*this, at); }
Tensor Tensor::sigmoid(Where at) const { return lathe::sigmoid(*this, at); }
Tensor Tensor::softplus(Where at) const { return lathe::softplus(*this, at); }
Tensor Tensor::relu(Where at) const { return lathe::relu(*this, at); }
Tensor Tensor::silu(Where at) const { return lathe::silu(*this, at); }
Tensor Tensor::bitwise_and(const Tensor& other, Where at) const { return lathe::bitwise_and(*this, other, at); }
Tensor Tensor::bitwise_or(const Tensor& other, Where at) const { return lathe::bitwise_or(*this, other, at); }
Tensor Tensor::bitwise_xor(const Tensor& other, Where at) const { return lathe::bitwise_xor(*this, other, at); }
Tensor Tensor::bitwise_not(Where at) const { return lathe::bitwise_not(*this, at); }
Tensor Tensor::conj(Where at) const { return lathe::conj(*this, at); }
Tensor Tensor::isnan(Where at) const { return lathe::isnan(*this, at); }
Tensor Tensor::isfinite(Where at) const { return lathe::isfinite(*this, at); }
Tensor Tensor::gelu(bool tanh_approximation, Where at) const { return lathe::gelu(*this, tanh_approximation, at); }
Tensor Tensor::clamp(const Number& low, const Number& high, Where at) const {
  return lathe::clamp(*this, low, high, at);
}
Tensor Tensor::maximum(const Tensor& other, Where at) const { return lathe::maximum(*this, other, at); }
Tensor Tensor::maximum(const Number& other, Where at) const { return lathe::maximum(*this, other, at); }
Tensor Tensor::minimum(const Tensor& other, Where at) const { return lathe::minimum(*this, other, at); }
Tensor Tensor::minimum(const Number& other, Where at) const { return lathe::minimum(*this, other, at); }
Tensor Tensor::pow(const Tensor& exponent, Where at) const { return lathe::pow(*this, exponent, at); }
Tensor Tensor::where(const Tensor& condition, const Tensor& other, Where at) const {
  return lathe::where(condition, *this, other, at);
}
Tensor Tensor::where(const Tensor& condition, const Number& other, Where at) const {
  return lathe::where(condition, *this, other, at);
}

Tensor Tensor::tril(std::int64_t diagonal, Where at) const { return lathe::tril(*this, diagonal, at); }
Tensor Tensor::triu(std::int64_t diagonal, Where at) const { return lathe::triu(*this, diagonal, at); }
Tensor Tensor::cumsum(DimIndex dim, Where at) const { return lathe::cumsum(*this, dim, {}, at); }
Tensor Tensor::flip(DimIndex dim, Where at) const { return lathe::flip(*this, dim, at); }
Tensor Tensor::roll(const Dim& shift, DimIndex dim, Where at) const { return lathe::roll(*this, shift, dim, at); }
Tensor Tensor::outer(const Tensor& other, Where at) const { return lathe::outer(*this, other, at); }
Tensor Tensor::gather(const Tensor& indices, DimIndex dim, Where at) const {
  return lathe::gather(*this, indices, dim, at);
}
Tensor Tensor::take_along(const Tensor& indices, DimIndex dim, Where at) const {
  return lathe::take_along(*this, indices, dim, at);
}
Tensor Tensor::scatter(const Tensor& indices, const Tensor& source, DimIndex dim, Where at) const {
  return lathe::scatter(*this, indices, source, dim, at);
}
Tensor Tensor::update_rows(const Tensor& positions, const Tensor& rows, DimIndex dim, Where at) const {
  return lathe::update_rows(*this, positions, rows, dim, at);
}
Tensor Tensor::unfold(DimIndex dim, const UnfoldOptions& windows, Where at) const {
  return lathe::unfold(*this, dim, windows, at);
}
Ranked Tensor::sort(DimIndex dim, Flag descending, Where at) const { return lathe::sort(*this, dim, descending, at); }
Tensor Tensor::argsort(DimIndex dim, Flag descending, Where at) const {
  return lathe::argsort(*this, dim, descending, at);
}
Ranked Tensor::top_k(const Dim& k, DimIndex dim, Flag largest, Where at) const {
  return lathe::top_k(*this, k, dim, largest, at);
}

}  // namespace lathe
