#pragma once

#include <array>

#include "frontend/train/optimizer.h"

namespace lathe {

/// torch.optim.Muon: the momentum of a matrix is replaced by the nearest matrix with orthogonal rows or columns,
/// computed by Newton-Schulz iterations (Jordan et al. 2024). It updates matrices only; give vectors, embeddings and
/// the output layer to a group with AdamW:
///
///   training_step(g, loss, AdamW{.lr = 3e-4}, {.groups = {{"hidden", names_with({"mlp"}), Muon{.lr = 2e-2}}}});
///
/// The iterations of parameters of equal shapes run as one batched product, in f32 (f64 for f64). Throws UserError
/// [optimizer_rule] for a parameter that is no matrix of known sizes. The state is "optimizer.momentum.<parameter>".
struct Muon {
  enum class Scale : std::uint8_t {
    original,   ///< lr * sqrt(max(1, rows / columns))
    like_adamw  ///< lr * 0.2 * sqrt(max(rows, columns)): updates of the size of AdamW's (Liu et al. 2025)
  };

  Schedule lr = 1e-3;
  double momentum = 0.95;
  double weight_decay = 0.1;
  bool nesterov = true;
  Scale scale = Scale::original;
  std::array<double, 3> coefficients = {3.4445, -4.775, 2.0315};  ///< of x, (x xT) x and (x xT)^2 x
  int iterations = 5;
  double eps = 1e-7;  ///< smallest norm that a matrix is divided by

  operator Optimizer() const;  // NOLINT(google-explicit-constructor)
};

}  // namespace lathe
