#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "frontend/nn/linear.h"

namespace lathe::nn {

struct RelativeBiasOptions {
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
  std::int64_t buckets = 32;        ///< rows of the table
  std::int64_t max_distance = 128;  ///< distances from this one on share a bucket
  bool bidirectional = true;        ///< keys before and after a query have half of the buckets each
};

/// A learned bias per head and bucket of the distance from query to key: near distances have a bucket each, far ones
/// share buckets by their logarithm (Raffel et al. 2020, T5). Pass it to AttentionContext::with_bias. The table
/// [buckets, h] is "weight".
class RelativeBias : public Module {
 public:
  /// Throws UserError [relative_bias_options] for fewer than 2 buckets per direction, or if max_distance is not
  /// greater than the number of buckets that have one distance each.
  RelativeBias(const Module& parent, std::string_view name, const Dim& h, const RelativeBiasOptions& options = {},
               Where at = Where::current());
  /// Returns the bias of queries 0 .. T-1 and keys 0 .. S-1: [h, T, S] in `dtype`.
  Tensor operator()(const Graph& g, const Dim& T, const Dim& S, DType dtype, Where at = Where::current()) const;
  /// Returns the bias of queries at positions i64 [T] and keys 0 .. S-1, for new tokens after a cache: [h, T, S].
  Tensor operator()(const Tensor& positions, const Dim& S, DType dtype, Where at = Where::current()) const;

 private:
  Tensor bucket(const Tensor& distance) const;
  Tensor values(const Tensor& ahead, DType dtype) const;

  RelativeBiasOptions options_;
  std::int64_t near_ = 0, side_ = 0;  ///< per direction: buckets with one distance each, and all buckets
  Embedding table_;
};

}  // namespace lathe::nn
