#pragma once

#include <cstdint>
#include <optional>

#include "frontend/tensor.h"

/// Losses. Values equal those of the functions of the same names in torch.nn.functional, unless noted.
namespace lathe {

/// How the losses of elements (or of rows, for a loss with one value per row) are reduced.
enum class Reduction : std::uint8_t {
  mean,
  sum,
  none,  ///< no reduction
};

/// Returns the mean of -log softmax(logits)[target] over targets that differ from `ignore_index`: logits [..,
/// classes], targets i64 [..] -> []. Float targets [.., classes] are class probabilities: every row counts, and
/// `ignore_index` is rejected [cross_entropy_targets].
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, std::optional<std::int64_t> ignore_index = {},
                     double label_smoothing = 0, Where at = Where::current());

/// Reduces (prediction - target)^2, for float shapes of which one broadcasts to the other. Throws UserError
/// [loss_shape] for others, such as [B, 1] and [B], which would give [B, B].
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
                Where at = Where::current());

/// Reduces -(w y log s + (1 - y) log(1 - s)) with s = sigmoid(logits) and y = targets in 0 .. 1, of the same shape.
/// Does not overflow. w is `positive_weight`, which broadcasts; default 1.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        const std::optional<Tensor>& positive_weight = {},
                                        Reduction reduction = Reduction::mean, Where at = Where::current());

/// Reduces the Kullback-Leibler divergence of each row, sum p (log p - log q) over the last dim, given the logarithms
/// of both, [.., classes] each. A class with p = 0 contributes 0. The mean is over rows, like reduction "batchmean"
/// of PyTorch's kl_div(log_q, log_p, log_target=True).
Tensor kl_divergence(const Tensor& log_p, const Tensor& log_q, Reduction reduction = Reduction::mean,
                     Where at = Where::current());

}  // namespace lathe
