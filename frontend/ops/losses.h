#pragma once

#include <cstdint>
#include <optional>

#include "frontend/tensor.h"

/// Losses. Their values are those of the functions of the same names in torch.nn.functional, but where it is said.
namespace lathe {

/// What becomes of the losses of single elements, or of single rows where a loss has one a row.
enum class Reduction : std::uint8_t {
  mean,
  sum,
  none,  ///< they stay as they are
};

/// The mean of -log softmax(logits)[target] over targets that differ from `ignore_index`: logits [.., classes],
/// targets i64 [..] -> []. Float targets [.., classes] are probabilities of the classes; every row counts then, and
/// an `ignore_index` is refused [cross_entropy_targets].
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, std::optional<std::int64_t> ignore_index = {},
                     double label_smoothing = 0, Where at = Where::current());

/// (prediction - target)^2, any float shapes that broadcast.
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean,
                Where at = Where::current());

/// -(w y log s + (1 - y) log(1 - s)) with s = sigmoid(logits) and y = targets in 0 .. 1, of one shape; without
/// overflow. `positive_weight`, w, is 1 where it is not given, and broadcasts.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& targets,
                                        const std::optional<Tensor>& positive_weight = {},
                                        Reduction reduction = Reduction::mean, Where at = Where::current());

/// The divergence of Kullback and Leibler of each row, sum p (log p - log q) over the last dim, from the logarithms
/// of both, [.., classes] each; a class with p = 0 counts nothing. The mean is over rows, what PyTorch calls
/// "batchmean" of kl_div(log_q, log_p, log_target=True).
Tensor kl_divergence(const Tensor& log_p, const Tensor& log_q, Reduction reduction = Reduction::mean,
                     Where at = Where::current());

}  // namespace lathe
