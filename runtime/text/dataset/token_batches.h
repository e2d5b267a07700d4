#pragma once

#include <cstdint>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "runtime/text/dataset/example.h"

namespace lathe {

struct BatchOptions {
  std::int64_t context = 512;   ///< tokens a row at most
  std::int64_t batch = 8;       ///< rows
  std::int64_t accumulate = 1;  ///< batches that make one update
  /// Rows are filled with several examples, which do not see each other; else each has a row of its own, padded.
  bool pack = false;
  bool lengths = false;    ///< adds the lengths of rows that are not packed (CausalLm::depends_on_length())
  std::uint64_t seed = 1;  ///< of the order, which is another one in every epoch
};

/// The batches of examples that a language model is trained on. Batch `step` depends on the options and that number
/// alone, so that a run that goes on sees what one that never ended would have seen. What a batch holds:
///
///   "input_ids"     i64 [B, T]
///   "labels"        i64 [B, T]  the token where it is to be predicted, else -100
///   "weight"        f64 []      what the sum of the losses of this batch counts
///   "position_ids"  i64 [B, T]  packed: from 0 in each example
///   "segments"      i64 [B, T]  packed: the number of the example in its row
///   "lengths"       i64 [B]     with BatchOptions::lengths and not packed: tokens of each row without padding
///
/// The weight is accumulate / n where the update's batches have n labels together, so that the mean of their losses,
/// and of their gradients, is that of one large batch: every token counts the same.
class TokenBatches {
 public:
  /// Examples are of `context` tokens at most, and have something to learn each.
  TokenBatches(std::vector<Example> examples, const BatchOptions& options);

  /// Batch `step` of a training: rows in the order of its epoch, one epoch after the other.
  Tensors training(std::int64_t step) const;

  /// Batch `index` of an evaluation, in the order of the rows; its last one is filled up with rows without labels.
  /// The weight is count / n for the n labels of the first `count` batches: the mean of these batches' losses is that
  /// of all tokens.
  Tensors evaluation(std::int64_t index, std::int64_t count) const;
  /// How many of these there are.
  std::int64_t evaluation_batches() const;

  std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  /// Updates until each row was seen once, rounded up.
  std::int64_t updates_per_epoch() const;
  std::int64_t tokens() const { return tokens_; }            ///< of all examples
  std::int64_t predictions() const { return predictions_; }  ///< labels of all examples
  /// The labels and the tokens (without padding) of batch `step` of a training.
  std::int64_t predictions_of(std::int64_t step) const;
  std::int64_t tokens_of(std::int64_t step) const;

 private:
  using Row = std::vector<std::size_t>;  ///< examples
  /// Row n of a training, counted through all epochs.
  const Row& row_of(std::int64_t n) const;
  Tensors tensors(const std::vector<const Row*>& rows, double weight) const;
  void write(const Row& row, std::int64_t at, std::int64_t length, Tensors& to) const;
  std::int64_t labels_of(const Row& row) const;
  std::int64_t size_of(const Row& row) const;

  BatchOptions options_;
  std::vector<Example> examples_;
  std::vector<Row> rows_;
  std::int64_t tokens_ = 0, predictions_ = 0;
  mutable std::int64_t epoch_ = -1;           ///< of order_
  mutable std::vector<std::uint32_t> order_;  ///< of the rows
};

/// Numbers 0 .. n-1 in an order that depends on seed and stream alone (Fisher and Yates).
std::vector<std::uint32_t> shuffled(std::int64_t n, std::uint64_t seed, std::uint64_t stream);

/// Takes a share of the examples, at least one, out of them: drawn by the seed, in their order.
std::vector<Example> split_off(std::vector<Example>& examples, double share, std::uint64_t seed);

}  // namespace lathe
