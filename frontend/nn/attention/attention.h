#pragma once

#include <optional>
#include <string_view>

#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"

namespace lathe::nn {

/// [B, S, h*d] -> [B, h, S, d]: a view and a transpose, without a copy.
Tensor split_heads(const Tensor& x, const Dim& h, const Dim& d, Where at = Where::current());
/// [B, h, S, d] -> [B, S, joined], where joined = h*d: transpose, contiguous, view.
Tensor merge_heads(const Tensor& x, const Dim& joined, Where at = Where::current());
/// [B, kv, S, d] -> [B, kv*times, S, d], each head `times` times in a row: unsqueeze, expand, reshape.
Tensor repeat_heads(const Tensor& x, const Dim& times, Where at = Where::current());

struct AttentionOptions {
  std::optional<DType> dtype = {};        ///< of the parameters; default: that of the parent
  std::optional<Dim> d_k = {}, d_v = {};  ///< default: d_model / h
  bool bias = true;
  double dropout = 0;  ///< of the attention weights
  double fill = -1e9;  ///< score of a pair that the mask excludes
};

/// Multi-head attention (Vaswani et al. 2017, 3.2) with projections q, k, v and o.
class MultiHeadAttention : public Module {
 public:
  /// Throws UserError [attention_heads] if d_k or d_v is not given and h does not divide d_model.
  MultiHeadAttention(const Module& parent, std::string_view name, const Dim& d_model, const Dim& h,
                     const AttentionOptions& options = {}, Where at = Where::current());
  /// query [B, S, d_model], source [B, T, d_model]; mask: integers or bools that broadcast to [B, h, S, T], where 0
  /// excludes a pair. Returns [B, S, d_model].
  Tensor operator()(const Tensor& query, const Tensor& source, const std::optional<Tensor>& mask = {},
                    Where at = Where::current()) const;

 private:
  Dim h_, d_k_, d_v_;
  double scale_, fill_;
  Linear q_, k_, v_, o_;
  Dropout dropout_;
};

}  // namespace lathe::nn
