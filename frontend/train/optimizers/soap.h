#pragma once

#include <optional>

#include "frontend/train/optimizer.h"

namespace lathe {

/// SOAP (Vyas et al. 2024, algorithm 3), as its authors' soap.py: Adam in the eigenbases of Shampoo's
/// preconditioners. For each dim of at most `largest_dim`, a parameter keeps a mean of the gradient's products over
/// all other dims, "optimizer.gram<dim>.<parameter>", and an orthonormal basis, "optimizer.basis<dim>.<parameter>",
/// both [size, size] of the dim. The first step leaves the parameters unchanged: it computes the eigenvectors of the
/// first products. Later steps project the gradient into the bases of the step before; every `frequency` steps, a
/// power iteration and a QR factorization move the bases. Vectors have Adam's update. The moments, in the bases, are
/// "optimizer.m.<parameter>" and "optimizer.v.<parameter>".
struct SOAP {
  Schedule lr = 3e-3;
  double beta1 = 0.95, beta2 = 0.95;
  std::optional<double> shampoo_beta = {};  ///< decay of the products; by default beta2
  double eps = 1e-8;
  double weight_decay = 1e-2;
  std::int64_t frequency = 10;       ///< steps between moves of the bases
  std::int64_t largest_dim = 10000;  ///< larger dims have no basis: the vocabulary of an embedding
  bool normalize = false;            ///< divides each update by its root mean square

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace lathe
