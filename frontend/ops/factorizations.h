#pragma once

#include "frontend/tensor.h"

/// Factorizations of the matrices in the last two dims into orthonormal bases. For small matrices: a CPU core, or a
/// block of a GPU, computes one matrix. A bf16 or f16 matrix is factorized in f32.
namespace lathe {

/// The factors of a = q r: the columns of q [.., m, n] are orthonormal, r [.., n, n] is upper triangular.
struct QR {
  Tensor q, r;
};
/// torch.linalg.qr for a [.., m, n] with m >= n, by Householder reflections; the diagonal of r is 0 or more, so that
/// the factors are unique if the columns are independent. Gradients require that. [basis_columns]
QR qr(const Tensor& a, Where at = Where::current());

/// Eigenvalues [.., n], ascending, and eigenvectors [.., n, n] as columns.
struct Eigen {
  Tensor values, vectors;
};
/// torch.linalg.eigh of (a + a^T) / 2 for a [.., n, n], by cyclic Jacobi rotations. Gradients require distinct
/// eigenvalues; otherwise they are infinite or NaN. [matrix_square]
Eigen eigh(const Tensor& a, Where at = Where::current());

/// The q of qr(a).
Tensor orthonormal_basis(const Tensor& a, Where at = Where::current());
/// The q of qr(a) if the bool scalar `when` is true; otherwise the tensor `otherwise`, of the type of `a`, without
/// the time of the factorization. [basis_otherwise]
Tensor orthonormal_basis(const Tensor& a, const Tensor& when, const Tensor& otherwise, Where at = Where::current());
/// The eigenvectors of eigh(a), in no order.
Tensor eigenvectors(const Tensor& a, Where at = Where::current());
/// The eigenvectors of eigh(a), in no order, if the bool scalar `when` is true; otherwise the tensor `otherwise`, of
/// the type of `a`, without the time of the factorization. [basis_otherwise]
Tensor eigenvectors(const Tensor& a, const Tensor& when, const Tensor& otherwise, Where at = Where::current());

}  // namespace lathe
