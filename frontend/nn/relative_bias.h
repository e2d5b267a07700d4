#pragma once

#include <cstdint>
#include <string_view>

#include "frontend/nn/linear.h"

namespace lathe::nn {

struct RelativeBiasOptions {
  DType dtype = f32;
  std::int64_t buckets = 32;        ///< rows of the table
  std::int64_t max_distance = 128;  ///< from which on all distances share a bucket
  bool bidirectional = true;        ///< keys behind a query and before it have half of the buckets each
};

/// A learned number for each head and bucket of the distance from query to key, near ones exactly, far ones by their
/// logarithm (Raffel et al. 2020, T5): what AttentionContext::with_bias takes. The table [buckets, h] is "weight".
class RelativeBias : public Module {
 public:
  /// Throws UserError [relative_bias_options] where there are fewer than 2 buckets a direction, or max_distance is
  /// not above those that stand for one distance each.
  RelativeBias(const Module& parent, std::string_view name, const Dim& h, const RelativeBiasOptions& options = {},
               Where at = Where::current());
  /// Of queries 0 .. T-1 and keys 0 .. S-1: [h, T, S] in `dtype`.
  Tensor operator()(const Graph& g, const Dim& T, const Dim& S, DType dtype, Where at = Where::current()) const;
  /// Of queries at positions i64 [T] and keys 0 .. S-1, as for new tokens behind those of a cache: [h, T, S].
  Tensor operator()(const Tensor& positions, const Dim& S, DType dtype, Where at = Where::current()) const;

 private:
  Tensor bucket(const Tensor& distance) const;
  Tensor values(const Tensor& ahead, DType dtype) const;

  RelativeBiasOptions options_;
  std::int64_t near_ = 0, side_ = 0;  ///< buckets of one distance each, and all of them, in a direction
  Embedding table_;
};

}  // namespace lathe::nn
