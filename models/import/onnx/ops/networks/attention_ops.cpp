#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "models/import/onnx/ops/networks/attention_heads.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/onnx/tensor_data.h"

namespace lathe::onnx {

namespace {

/// [B, S, h * d] -> [B, h, S, d]
Tensor heads_of(const OpCall& call, const Tensor& x, std::string_view attribute) {
  if (x.rank() == 4) return call.ignore({attribute}), x;
  return split_heads(call, x, call.integer(attribute));
}

/// The parts of an attention: q [B, h, S, d], k and v [B, kv, T, d], with the past before the new ones.
struct AttentionParts {
  Tensor q, k, v;
  Dim past = 0;
  double scale = 1;
};

AttentionParts attention_parts(const OpCall& call) {
  const Tensor q = call.tensor(0);
  if (q.rank() != 3 && q.rank() != 4) call.fail("the query has neither 3 nor 4 dims", "import_operand");
  AttentionParts parts{heads_of(call, q, "q_num_heads"), heads_of(call, call.tensor(1), "kv_num_heads"),
                       heads_of(call, call.tensor(2), "kv_num_heads")};
  if (call.has(4) != call.has(5)) call.fail("past_key and past_value are given together", "import_operand");
  if (call.has(4)) {
    parts.past = call.operand(4).shape()[2].unnamed();
    parts.k = call.joined(4, parts.k, 2);
    parts.v = call.joined(5, parts.v, 2);
  }
  if (call.has("scale")) {
    parts.scale = call.real("scale");
  } else {
    const auto size = parts.q.size(3).value();
    if (!size) call.fail("the size of a head is unknown", "import_size", "give the attribute scale");
    parts.scale = 1 / std::sqrt(static_cast<double>(*size));
  }
  return parts;
}

/// The mask for all T keys: keys after the end of a shorter mask are not seen.
Tensor mask_of(const OpCall& call, const Dim& keys) {
  const Tensor mask = call.tensor(3);
  const Dim missing = keys - mask.size(-1).unnamed();
  if (missing.is(0) || mask.size(-1).is(1)) return mask;
  if (importing::sign_of(missing) != importing::Sign::positive) return mask;
  const double hidden = mask.dtype() == boolean ? 0 : -std::numeric_limits<double>::infinity();
  return padded(mask, mask.rank() - 1, 0, missing, hidden);
}

/// The number of keys before the own one of each query, i64 [S, 1] or [B, 1, S, 1]. The queries are the last ones of
/// a cache whose lengths are operand 6.
Tensor positions_of(const OpCall& call, const AttentionParts& parts, const std::optional<Tensor>& lengths) {
  const Dim queries = parts.q.size(2).unnamed();
  const Tensor rows = call.graph().arange(queries, i64).unsqueeze(1);
  if (lengths && !call.has(4)) return rows + (*lengths - call.graph().dim_value(queries));
  return rows + call.graph().dim_value(parts.past);
}

bool has_window(const OpCall& call) {
  return call.integer("left_window_size", -1) >= 0 || call.integer("right_window_size", -1) >= 0;
}

Tensor with_masks(const OpCall& call, const AttentionParts& parts, Tensor scores) {
  const Tensor keys = call.graph().arange(parts.k.size(2), i64);
  std::optional<Tensor> lengths;
  if (call.has(6)) lengths = call.tensor(6).to(i64).reshape({parts.q.size(0), 1, 1, 1});
  if (call.has(3)) scores = with_mask(scores, mask_of(call, parts.k.size(2)));
  const bool is_causal = call.flag("is_causal", false);
  if (is_causal || has_window(call)) {
    const Tensor own = positions_of(call, parts, lengths);
    const std::int64_t left = call.integer("left_window_size", -1), right = call.integer("right_window_size", -1);
    if (is_causal) scores = with_mask(scores, keys <= own);
    if (left >= 0) scores = with_mask(scores, keys >= own - left);
    if (right >= 0) scores = with_mask(scores, keys <= own + right);
  }
  return lengths ? with_mask(scores, keys < *lengths) : scores;
}

/// The result [B, h, S, e] in the layout of the query.
Tensor in_layout_of_query(const OpCall& call, const Tensor& y) {
  return call.operand(0).rank() == 3 ? merged_heads(y) : y;
}

/// Whether a query may see no key. A causal mask alone leaves it the first one.
bool may_hide_all(const OpCall& call) { return call.has(3) || call.has(6) || has_window(call); }

/// Whether Lathe's attention has all that the node has: no cap, no past before a causal mask, no window, no lengths,
/// and only the first result.
bool is_plain(const OpCall& call, const AttentionParts& parts) {
  const bool is_causal = call.flag("is_causal", false);
  const bool has_mask = call.has(3), is_whole = !has_mask || call.operand(3).rank() >= 2;
  if (call.has(6) || call.reads(1) || call.reads(2) || call.reads(3) || !is_whole) return false;
  if (has_window(call)) return false;
  if (call.real("softcap", 0) > 0 || call.has("softmax_precision") || (is_causal && !parts.past.is(0))) return false;
  if (!has_mask) return true;
  const DType dtype = call.operand(3).dtype();
  return dtype == boolean || dtype == parts.q.dtype();
}

Tensor plain_attention(const OpCall& call, const AttentionParts& parts, const Tensor& k, const Tensor& v) {
  call.ignore({"qk_matmul_output_mode"});
  const std::optional<Tensor> mask = call.has(3) ? std::optional(mask_of(call, k.size(2))) : std::nullopt;
  return in_layout_of_query(
      call, attention(parts.q, k, v, mask, parts.scale, Causal(call.flag("is_causal", false)), may_hide_all(call)));
}

/// softmax(q k^T * scale, capped, masked) v: Lathe's attention, or step by step. A query that sees no key gives 0.
/// softmax_precision is at least kept:
/// softmax is computed in f32 or f64.
Results attention_op(const OpCall& call) {
  const AttentionParts parts = attention_parts(call);
  const Tensor q = parts.q, k = repeated_heads(call, parts.k, q.size(1)),
               v = repeated_heads(call, parts.v, q.size(1));
  if (is_plain(call, parts)) return {plain_attention(call, parts, k, v)};
  const std::int64_t mode = call.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    call.fail(fmt::format("the attribute qk_matmul_output_mode is {}", mode), "import_attribute");
  DType precision = q.dtype();
  if (call.has("softmax_precision"))
    precision = dtype_of(call.integer("softmax_precision"), call.node().location.place());
  const double soft_cap = call.real("softcap", 0);
  const Tensor products = matmul(q, k.transpose(2, 3)) * parts.scale;
  const Tensor capped = soft_cap > 0 ? tanh(products / soft_cap) * soft_cap : products;
  const Tensor masked = with_masks(call, parts, capped);
  const Tensor weights = softmax(masked.to(precision), -1, may_hide_all(call));
  const Tensor y = in_layout_of_query(call, matmul(weights.to(v.dtype()), v));
  const Tensor scores[] = {products, capped, masked, weights.to(q.dtype())};
  return {y, parts.k, parts.v, scores[mode]};
}

/// cos and sin [B, S, d/2], or tables [n, d/2] and positions [B, S]. Rotates the first elements of each head.
Results rotary_embedding(const OpCall& call) {
  const Tensor given = call.tensor(0);
  const Tensor x = heads_of(call, given, "num_heads");
  const Dim size = x.size(3).unnamed();
  const std::int64_t rotated = call.integer("rotary_embedding_dim", 0);
  const Dim part = rotated == 0 ? size : Dim(rotated);
  const auto table = [&](std::size_t i) {
    const Tensor cache = call.tensor(i);
    const Tensor rows = call.has(3) ? gather(cache, from_front(call.tensor(3), cache.size(0).unnamed())) : cache;
    if (rows.size(2) * Dim(2) != part)
      call.fail(fmt::format("operand {} has {} columns for {} rotated elements", i, rows.size(2).to_string(),
                            part.to_string()),
                "import_operand");
    return rows;
  };
  const Tensor y = rotated_heads(x, table(1), table(2), call.flag("interleaved", false));
  return {given.rank() == 3 ? merged_heads(y) : y};
}

}  // namespace

std::span<const OpRecord> attention_ops() {
  static constexpr OpRecord records[] = {
      {"Attention", 23, 24,
       "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision", attention_op},
      {"Attention", 25, latest,
       "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode right_window_size scale softcap "
       "softmax_precision",
       attention_op},
      {"RotaryEmbedding", 23, latest, "interleaved num_heads rotary_embedding_dim", rotary_embedding},
  };
  return records;
}

}  // namespace lathe::onnx
