#include "frontend/nn/attention/attention.h"

#include <fmt/core.h>

#include <cmath>

#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

/// Returns d_model / h, which must be a known number.
Dim head_size(const Dim& d_model, const Dim& h, std::string_view name, const Where& at) {
  const auto size = d_model.divided_by(h);
  if (!size || !size->value())
    throw UserError(Location(at), "attention",
                    fmt::format("{} cannot be split into {} heads", d_model.to_string(), h.to_string()),
                    "attention_heads", fmt::format("make d_model a multiple of h, or give {}", name));
  return Dim(name, *size);
}

/// Returns h * d, as d_model if they are equal so that the dim keeps its name.
Dim joined(const Dim& h, const Dim& d, const Dim& d_model) { return h * d == d_model ? d_model : h * d; }

LinearOptions projection(const AttentionOptions& options) {
  return {.bias = options.bias, .weight = Init::xavier_uniform()};
}

}  // namespace

Tensor split_heads(const Tensor& x, const Dim& h, const Dim& d, Where at) {
  return x.view({x.size(0, at), x.size(1, at), h, d}, at).transpose(1, 2, at);
}

Tensor merge_heads(const Tensor& x, const Dim& joined, Where at) {
  const Tensor rows = x.transpose(1, 2, at);  // [B, S, h, d]
  return rows.contiguous(at).view({rows.size(0), rows.size(1), joined}, at);
}

Tensor repeat_heads(const Tensor& x, const Dim& times, Where at) {
  const Dim B = x.size(0, at), kv = x.size(1, at), S = x.size(2, at), d = x.size(3, at);
  return x.unsqueeze(2, at).expand({B, kv, times, S, d}, at).reshape({B, kv * times, S, d}, at);
}

MultiHeadAttention::MultiHeadAttention(const Module& parent, std::string_view name, const Dim& d_model, const Dim& h,
                                       const AttentionOptions& options, Where at)
    : Module(parent, name, "MultiHeadAttention", options.dtype),
      h_(h),
      d_k_(options.d_k ? *options.d_k : head_size(d_model, h, "d_k", at)),
      d_v_(options.d_v ? *options.d_v : head_size(d_model, h, "d_v", at)),
      scale_(std::sqrt(static_cast<double>(d_k_.number(at)))),
      fill_(options.fill),
      q_(*this, "q", d_model, joined(h_, d_k_, d_model), projection(options), at),
      k_(*this, "k", d_model, joined(h_, d_k_, d_model), projection(options), at),
      v_(*this, "v", d_model, joined(h_, d_v_, d_model), projection(options), at),
      o_(*this, "o", joined(h_, d_v_, d_model), d_model, projection(options), at),
      dropout_(options.dropout, at) {}

Tensor MultiHeadAttention::operator()(const Tensor& query, const Tensor& source, const std::optional<Tensor>& mask,
                                      Where at) const {
  const CallSite line(query, at, path());
  const Tensor q = split_heads(q_(query), h_, d_k_);                              // [B, h, S, d_k]
  const Tensor k = split_heads(k_(source), h_, d_k_);                             // [B, h, T, d_k]
  const Tensor v = split_heads(v_(source), h_, d_v_);                             // [B, h, T, d_v]
  const Tensor scores = matmul(q, k.transpose(-2, -1)) / scale_;                  // [B, h, S, T]
  const Tensor allowed = mask ? masked_fill(scores, *mask == 0, fill_) : scores;  // [B, h, S, T]
  const Tensor weights = dropout_(softmax(allowed, -1));                          // [B, h, S, T]
  return o_(merge_heads(matmul(weights, v), o_.weight().shape()[1]));             // [B, S, d_model]
}

}  // namespace lathe::nn
