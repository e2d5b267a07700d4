#include <fmt/core.h>

#include <cmath>

#include "models/import/onnx/ops/networks/attention_heads.h"
#include "models/import/onnx/ops/standard_ops.h"

/// Attention with a cache and rotary embeddings of ONNX Runtime's domain com.microsoft.
namespace lathe::onnx {

namespace {

void require_default(const OpCall& call, std::string_view attribute, std::int64_t fallback, std::string_view hint) {
  if (const std::int64_t given = call.integer(attribute, fallback); given != fallback)
    call.fail(fmt::format("the attribute {} is {}, and only {} is supported", attribute, given, fallback),
              "import_unsupported", hint);
}

/// One node: its heads, and the rows of its cache. A cache in a state has the rows of shorter sequences at its end,
/// so that all sequences write to the same rows; other caches have them at the start, as in ONNX Runtime.
class GroupQuery {
 public:
  explicit GroupQuery(const OpCall& call) : call_(call), is_kept_(call.is_kept(past_key)) {
    require_supported();
    split();
    if (call.has(past_key)) past_ = call.operand(past_key).shape()[2].unnamed();
    added_ = q_.size(2).unnamed();
    require_total();
    lengths_ = call.tensor(seqlens_k).to(i64).reshape({q_.size(0), 1}) + 1;
    if (!past_.is(0)) start_ = lengths_ - size(added_);
    if (!past_.is(0) && !is_kept_ && !past_.value()) start_ = where(is_prompt(), 0, start_);
  }

  Results results() {
    if (call_.flag("do_rotary", false)) rotate();
    call_.ignore({"rotary_interleaved"});
    const Tensor keys = joined(past_key, k_), values = joined(past_value, v_);
    const Tensor k = repeated_heads(call_, keys, q_.size(1)), v = repeated_heads(call_, values, q_.size(1));
    return {merged_heads(attended(k, v)), keys, values};
  }

 private:
  enum Operand : std::size_t {
    query,
    key,
    value,
    past_key,
    past_value,
    seqlens_k,
    total_length,
    cos_cache,
    sin_cache,
    position_ids,
    attention_bias,
    head_sink,
    k_scale,
    v_scale,
    q_norm_weight,
    k_norm_weight,
    query_seqlens
  };

  void require_supported() const {
    constexpr std::string_view quantized = "export the model with a cache of floats";
    require_default(call_, "kv_cache_bit_width", 0, quantized);
    require_default(call_, "sliding_window_cache", 0, "export the model with a cache that keeps all rows");
    require_default(call_, "qk_output", 0, "export the model without the output of scores");
    for (const std::string_view attribute : {"k_quant_type", "v_quant_type"})
      if (const std::string kind = call_.text(attribute, "NONE"); kind != "NONE")
        call_.fail(fmt::format("the attribute {} is {}, and only NONE is supported", attribute, kind),
                   "import_unsupported", quantized);
    call_.ignore({"q_norm_epsilon", "k_norm_epsilon", "qk_norm_epsilon"});  // without weights, they have no effect
    constexpr std::string_view norms = "export the model with its norms as nodes of their own";
    refuse(k_scale, "k_scale", quantized);
    refuse(v_scale, "v_scale", quantized);
    refuse(q_norm_weight, "q_norm_weight", norms);
    refuse(k_norm_weight, "k_norm_weight", norms);
    refuse(query_seqlens, "query_seqlens", "give chunks without padding");
    require_pair(past_key, past_value, "past_key and past_value");
    require_pair(key, value, "key and value");
  }
  void refuse(Operand operand, std::string_view name, std::string_view hint) const {
    if (call_.has(operand))
      call_.fail(fmt::format("the operand {} is not supported", name), "import_unsupported", hint);
  }
  void require_pair(Operand a, Operand b, std::string_view names) const {
    if (call_.has(a) != call_.has(b)) call_.fail(fmt::format("{} are given together", names), "import_operand");
  }

  Tensor size(const Dim& dim) const { return call_.graph().dim_value(dim); }
  Tensor range(const Dim& count) const { return call_.graph().arange(count, i64); }
  /// Whether no rows are cached, if this is known at run time only: bool [].
  Tensor is_prompt() const { return size(past_) == 0; }

  /// The query alone may have all heads: those of the query, then of the keys and the values.
  void split() {
    const std::int64_t heads = call_.integer("num_heads"), kv = call_.integer("kv_num_heads");
    Tensor q = call_.tensor(query), k, v;
    if (q.rank() != 3) call_.fail("the query has not 3 dims", "import_operand");
    if (call_.has(key)) {
      k = call_.tensor(key);
      v = call_.tensor(value);
    } else {
      const std::optional<Dim> size = heads > 0 && kv > 0 ? q.size(2).divided_by(heads + 2 * kv) : std::nullopt;
      if (!size)
        call_.fail(fmt::format("{} columns do not divide into {} heads", q.size(2).to_string(), heads + 2 * kv),
                   "import_attribute");
      const Dim first = *size * Dim(heads), part = *size * Dim(kv);
      k = q.slice(2, first, first + part);
      v = q.slice(2, first + part, first + part + part);
      q = q.slice(2, 0, first);
    }
    q_ = split_heads(call_, q, heads);
    k_ = split_heads(call_, k, kv);
    v_ = split_heads(call_, v, kv);
  }

  /// The rows so far are the cached and the new ones. A length with a name of its own is checked when a run binds it.
  void require_total() const {
    const std::vector<Dim> total = call_.dims(total_length, "total_sequence_length");
    if (total.size() != 1) call_.fail("total_sequence_length has more than one element", "import_operand");
    const Dim rows = past_ + added_;
    if (total[0] == rows) return;
    const std::string message =
        fmt::format("total_sequence_length is {}, and there are {} cached rows and {} new ones", total[0].to_string(),
                    past_.to_string(), added_.to_string());
    const importing::Sign sign = importing::sign_of(total[0] - rows);
    if (sign == importing::Sign::positive || sign == importing::Sign::negative)
      call_.fail(message, "import_unsupported", "give a cache that has the rows so far, and no others");
    const ir::DimCheck check{.left = total[0].unnamed(),
                             .right = rows,
                             .relation = ir::DimCheck::Relation::equal,
                             .loc = call_.node().location,
                             .op = call_.node().op,
                             .label = "import_range",
                             .message = message};
    call_.graph().builder().add_checks({&check, 1});
  }

  /// The positions of the new rows, for rotary embeddings: i64 [B or 1, S].
  Tensor positions() const {
    const Tensor rows = range(added_).unsqueeze(0);
    if (call_.has(position_ids)) {
      const Tensor given = call_.tensor(position_ids);
      if (is_kept_) return given;
      // ONNX Runtime reads the first position of a prompt only.
      const Tensor of_prompt = given.slice(0, 0, 1).slice(1, 0, 1) + rows;
      if (past_.is(0)) return of_prompt;
      return past_.value() ? given : where(is_prompt(), of_prompt, given);
    }
    if (past_.is(0)) return rows;
    // The rows before a shorter sequence are not read.
    return is_kept_ ? maximum(start_ + rows, 0) : start_ + rows;
  }

  void rotate() {
    const Tensor at = positions();
    const auto table = [&](Operand operand) { return gather(call_.tensor(operand), at, 0); };
    const Tensor cos = table(cos_cache), sin = table(sin_cache);
    const bool interleaved = call_.flag("rotary_interleaved", false);
    q_ = rotated_heads(q_, cos, sin, interleaved);
    k_ = rotated_heads(k_, cos, sin, interleaved);
  }

  /// Returns all rows so far. Outside of a state, the new rows of a sequence follow its own last one.
  Tensor joined(Operand past, const Tensor& rows) const {
    if (!call_.has(past)) return rows;
    if (is_kept_ || past_.is(0)) return call_.joined(past, rows, 2);
    const Tensor all = concat({call_.tensor(past), rows}, 2);
    const Tensor at = range(past_ + added_).unsqueeze(0);
    const Tensor moved = where(at < start_, at, where(at < start_ + size(added_), at - start_ + size(past_), at));
    return take_along(all, moved.reshape({moved.size(0), 1, moved.size(1), 1}).expand(all.shape()), 2);
  }

  /// Which keys a query sees: bool [B or 1, 1, S, T]. Nothing if a causal mask says all.
  std::optional<Tensor> mask() const {
    const bool causal = call_.flag("causal", true);
    const std::int64_t window = call_.integer("local_window_size", -1);
    if (window > 0 && !causal)
      call_.fail("the attribute local_window_size has an effect with causal 1 only", "import_attribute");
    if (causal && past_.is(0) && window <= 0) return std::nullopt;
    const Tensor at = range(past_ + added_).unsqueeze(0).unsqueeze(0);
    // The row of each query: [B or 1, S, 1].
    const Tensor row = (is_kept_ ? size(past_) + range(added_).unsqueeze(0)
                                 : (past_.is(0) ? range(added_).unsqueeze(0) : start_ + range(added_).unsqueeze(0)))
                           .unsqueeze(2);
    const Tensor lengths = lengths_.unsqueeze(2);
    Tensor seen = is_kept_ ? at >= size(past_ + added_) - lengths : at < lengths;
    // A row before a shorter sequence sees itself, because no row may see nothing.
    if (is_kept_) seen = seen | (at == row);
    if (causal) seen = is_kept_ ? seen & (at <= row) : at <= row;
    if (window > 0) seen = seen & (at > row - window);
    return seen.unsqueeze(1);
  }

  double scale() const {
    if (const double given = call_.real("scale", 0); given != 0) return given;
    const auto size = q_.size(3).value();
    if (!size) call_.fail("the size of a head is unknown", "import_size", "give the attribute scale");
    return 1 / std::sqrt(static_cast<double>(*size));
  }

  /// One more score for each query, of a key without a value: [h, 1, 1].
  std::optional<Tensor> sink() const {
    const bool smooth = call_.flag("smooth_softmax", false);
    if (call_.has(head_sink)) return call_.tensor(head_sink).reshape({q_.size(1), 1, 1});
    if (!smooth) return std::nullopt;
    return call_.graph().zeros({1, 1, 1}, q_.dtype());
  }

  Tensor attended(const Tensor& k, const Tensor& v) const {
    const std::optional<Tensor> mask = this->mask(), sink = this->sink();
    const double cap = call_.real("softcap", 0);
    if (cap == 0 && !call_.has(attention_bias) && !sink)
      return attention(q_, k, v, mask, scale(), Causal(!mask.has_value()));
    Tensor scores = matmul(q_, k.transpose(2, 3)) * scale();
    if (cap != 0) scores = tanh(scores / cap) * cap;
    if (call_.has(attention_bias)) scores = scores + call_.tensor(attention_bias);
    const Tensor rows = range(added_).unsqueeze(1);
    scores = with_mask(scores, mask ? *mask : range(added_) <= rows);
    if (!sink) return matmul(softmax(scores, -1), v);
    const Dim keys = scores.size(3).unnamed();
    const Tensor more = sink->to(scores.dtype()).expand({scores.size(0), scores.size(1), scores.size(2), 1});
    return matmul(softmax(concat({scores, more}, 3), -1).slice(3, 0, keys), v);
  }

  const OpCall& call_;
  bool is_kept_;
  Tensor q_, k_, v_;
  Dim past_ = 0, added_ = 0;
  Tensor lengths_;  ///< rows of each sequence with the new ones, i64 [B, 1]
  Tensor start_;    ///< position of the first new row of each sequence, i64 [B, 1]; empty without a past
};

Results group_query_attention(const OpCall& call) { return GroupQuery(call).results(); }

/// Positions are [B, S], or that of the first row of all sequences.
Results contrib_rotary_embedding(const OpCall& call) {
  require_default(call, "is_packed_batching", 0, "give sequences of equal lengths");
  if (const double scale = call.real("scale", 1); scale != 1)
    call.fail(fmt::format("the attribute scale is {}, and only 1 is supported", scale), "import_unsupported");
  const Tensor given = call.tensor(0), cos = call.tensor(2), sin = call.tensor(3);
  call.ignore({"rotary_embedding_dim"});  // the tables have its size
  Tensor x = given;
  if (given.rank() == 3) {
    std::int64_t heads = call.integer("num_heads", 0);
    if (heads == 0) {
      const std::optional<Dim> all = given.size(2).divided_by(cos.size(1) * Dim(2));
      if (!all || !all->value())
        call.fail(fmt::format("{} columns do not divide into heads of {}", given.size(2).to_string(),
                              (cos.size(1) * Dim(2)).to_string()),
                  "import_operand");
      heads = *all->value();
    }
    x = split_heads(call, given, heads);
  }
  call.ignore({"num_heads"});
  Tensor positions = call.tensor(1);
  if (positions.rank() == 1) positions = positions.unsqueeze(0) + call.graph().arange(x.size(2), i64).unsqueeze(0);
  const Tensor y =
      rotated_heads(x, gather(cos, positions, 0), gather(sin, positions, 0), call.flag("interleaved", false));
  return {given.rank() == 3 ? merged_heads(y) : y};
}

}  // namespace

std::span<const OpRecord> group_query_ops() {
  static constexpr OpRecord records[] = {
      {"GroupQueryAttention", 1, 1,
       "causal do_rotary k_norm_epsilon k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads "
       "q_norm_epsilon qk_norm_epsilon qk_output rotary_interleaved scale sliding_window_cache smooth_softmax "
       "softcap "
       "v_quant_type",
       group_query_attention},
      {"RotaryEmbedding", 1, 1, "interleaved is_packed_batching num_heads rotary_embedding_dim scale",
       contrib_rotary_embedding},
  };
  return records;
}

}  // namespace lathe::onnx
