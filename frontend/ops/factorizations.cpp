#include "frontend/ops/factorizations.h"

#include "frontend/built.h"
#include "frontend/ops/ops.h"
#include "ir/ops/functional/functional_composites.h"

namespace lathe {

using detail::built;

QR qr(const Tensor& a, Where at) {
  const detail::Composed composed("qr", at, {&a});
  const Tensor q = orthonormal_basis(a);
  return {q, triu(matmul(q.transpose(-2, -1), a))};
}

Eigen eigh(const Tensor& a, Where at) {
  const detail::Composed composed("eigh", at, {&a});
  const Tensor v = eigenvectors(a), symmetric = (a + a.transpose(-2, -1)) * 0.5;
  const Tensor values = (v * matmul(symmetric, v)).sum(-2), order = argsort(values.detach(), -1);
  return {take_along(values, order, -1), take_along(v, order.unsqueeze(-2).expand(v.shape()), -1)};
}

Tensor orthonormal_basis(const Tensor& a, Where at) {
  return built("orthonormal_basis", at, detail::UnaryOp(ir::orthonormal_basis), a);
}
Tensor orthonormal_basis(const Tensor& a, const Tensor& when, const Tensor& otherwise, Where at) {
  return built("orthonormal_basis", at, detail::TernaryOp(ir::orthonormal_basis), a, when, otherwise);
}
Tensor eigenvectors(const Tensor& a, Where at) {
  return built("eigenvectors", at, detail::UnaryOp(ir::eigenvectors), a);
}
Tensor eigenvectors(const Tensor& a, const Tensor& when, const Tensor& otherwise, Where at) {
  return built("eigenvectors", at, detail::TernaryOp(ir::eigenvectors), a, when, otherwise);
}

}  // namespace lathe
