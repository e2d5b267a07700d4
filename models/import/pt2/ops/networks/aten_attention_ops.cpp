#include <fmt/core.h>

#include <cmath>

#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

/// Returns the factor of the scores: the argument, or 1 / sqrt(size of a head).
double scale_of(const OpCall& call, const Tensor& q) {
  if (call.has("scale")) return real_argument(call, "scale", 1);
  const auto size = q.size(-1).value();
  if (!size) call.fail("the size of a head is unknown", "import_size", "give the argument scale");
  return 1 / std::sqrt(static_cast<double>(*size));
}

/// Each key and value head serves several query heads, in a row.
Tensor for_query_heads(const OpCall& call, const Tensor& x, const Dim& heads) {
  if (x.size(-3) == heads) return x;
  const std::optional<Dim> times = heads.divided_by(x.size(-3));
  if (!times || !times->value()) call.fail("the query heads are no multiple of the key heads", "import_size");
  return x.repeat_interleave(*times->value(), x.rank() - 3);
}

/// Attention whose weights have dropout, step by step.
Tensor with_dropout(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double scale,
                    bool is_causal, double p) {
  const double hidden = -std::numeric_limits<double>::infinity();
  Tensor scores = matmul(q, k.transpose(-2, -1)) * scale;
  const auto hide = [&](const Tensor& seen) {
    scores = where(seen, scores, scores.graph().constant(hidden, scores.dtype()));
  };
  if (is_causal) hide(scores.graph().causal_mask(q.size(-2), k.size(-2)));
  if (!mask.is_empty() && mask.dtype() == boolean) hide(mask);
  if (!mask.is_empty() && mask.dtype() != boolean) scores = scores + mask.to(scores.dtype());
  return matmul(dropout(softmax(scores, -1, true), p), v);
}

/// q [.., h, n, d], k [.., kv, m, d], v [.., kv, m, e]. A query that sees no key gives 0.
Results attention_op(const OpCall& call) {
  const Tensor q = call.tensor(0);
  Tensor k = call.tensor(1), v = call.tensor(2), mask = optional_tensor(call, 3);
  const bool is_causal = call.flag("is_causal", false);
  if (call.flag("enable_gqa", false)) {
    if (q.rank() < 3) call.fail("the query has no heads", "import_operand");
    k = for_query_heads(call, k, q.size(-3));
    v = for_query_heads(call, v, q.size(-3));
  }
  const double scale = scale_of(call, q), p = real_argument(call, "dropout_p", 0);
  call.ignore({"compute_log_sumexp", "return_debug_mask"});
  if (p > 0) return {with_dropout(q, k, v, mask, scale, is_causal, p)};
  if (!mask.is_empty() && mask.dtype() != boolean) mask = mask.to(q.dtype());
  return {attention(q, k, v, mask.is_empty() ? std::nullopt : std::optional(mask), scale, Causal(is_causal), true)};
}

/// Softmax whose rows of -inf give 0, as in attention.
Results safe_softmax(const OpCall& call) {
  const Tensor x = call.tensor(0).to(dtype_argument(call, call.dtype(0)));
  return {softmax(x, axis_argument(call, x.rank()), true)};
}

}  // namespace

std::span<const OpRecord> aten_attention_ops() {
  static constexpr OpRecord records[] = {
      aten("scaled_dot_product_attention", "query key value attn_mask", "dropout_p is_causal scale enable_gqa",
           attention_op),
      aten("_scaled_dot_product_flash_attention_for_cpu", "query key value attn_mask", "dropout_p is_causal scale",
           attention_op),
      aten("_scaled_dot_product_efficient_attention", "query key value attn_bias",
           "compute_log_sumexp dropout_p is_causal scale", attention_op),
      aten("_scaled_dot_product_flash_attention", "query key value", "dropout_p is_causal return_debug_mask scale",
           attention_op),
      aten("_safe_softmax", "self", "dim dtype", safe_softmax),
  };
  return records;
}

}  // namespace lathe::pt2
