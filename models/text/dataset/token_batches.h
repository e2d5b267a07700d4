#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "models/text/dataset/epoch_order.h"
#include "models/text/dataset/example.h"

namespace lathe {

struct BatchOptions {
  std::int64_t context = 512;   ///< maximum tokens per row
  std::int64_t batch = 8;       ///< rows per batch
  std::int64_t accumulate = 1;  ///< batches per update (gradient accumulation)
  /// Pack several examples into each row; they do not attend to each other. Otherwise, each row is one padded
  /// example.
  bool pack = false;
  bool lengths = false;    ///< add the row lengths, unless rows are packed (CausalLm::depends_on_length())
  std::uint64_t seed = 1;  ///< seed of the row order, which differs in each epoch
};

/// Batches of examples for training a language model. Batch `step` depends only on the options and on `step`, so that
/// a resumed run sees the same batches as an uninterrupted one. Contents of a batch:
///
///   "input_ids"     i64 [B, T]
///   "labels"        i64 [B, T]  the token itself if it is predicted, else -100
///   "weight"        f64 []      factor of the sum of this batch's losses
///   "position_ids"  i64 [B, T]  packed: from 0 in each example
///   "segments"      i64 [B, T]  packed: the number of the example in its row
///   "lengths"       i64 [B]     with BatchOptions::lengths and not packed: tokens of each row without padding
///
/// The weight is accumulate / n if the batches of the update have n labels in total. Then the mean of their losses
/// and gradients equals that of one large batch, in which every token has the same weight.
class TokenBatches {
 public:
  /// Each example must have at most `context` tokens and at least one token to learn.
  TokenBatches(std::vector<Example> examples, const BatchOptions& options);

  /// Returns batch `step` of the training. Rows are in the order of their epoch, and epochs follow each other.
  Tensors training(std::int64_t step) const;

  /// Returns batch `index` of the evaluation. Rows are in order; the last batch is filled up with rows without
  /// labels. The weight is count / n for the n labels of the first `count` batches, so that the mean of the
  /// batch losses is the mean over all tokens.
  Tensors evaluation(std::int64_t index, std::int64_t count) const;
  /// Returns the number of evaluation batches.
  std::int64_t evaluation_batches() const;

  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Returns the number of updates until each row was used once, rounded up.
  std::int64_t updates_per_epoch() const;
  std::int64_t tokens() const { return tokens_; }            ///< of all examples
  std::int64_t predictions() const { return predictions_; }  ///< labels of all examples
  /// Return the number of labels, and of tokens without padding, in training batch `step`.
  std::int64_t predictions_of(std::int64_t step) const;
  std::int64_t tokens_of(std::int64_t step) const;

 private:
  using Row = std::vector<std::size_t>;  ///< indices of examples
  /// Returns row n of the training, counted across epochs.
  const Row& row_of(std::int64_t n) const { return rows_[order_->at(n)]; }
  Tensors tensors(const std::vector<const Row*>& rows, double weight) const;
  void write(const Row& row, std::int64_t at, std::int64_t length, Tensors& to) const;
  std::int64_t labels_of(const Row& row) const;
  std::int64_t size_of(const Row& row) const;

  BatchOptions options_;
  std::vector<Example> examples_;
  std::vector<Row> rows_;
  std::int64_t tokens_ = 0, predictions_ = 0;
  std::optional<EpochOrder> order_;  ///< of the rows
};

/// Removes a share of the examples, at least one, and returns them in their order. The seed determines the selection.
std::vector<Example> split_off(std::vector<Example>& examples, double share, std::uint64_t seed);

}  // namespace lathe
