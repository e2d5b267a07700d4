#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/key_value_cache.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/rope.h"

/// Attention as pretrained models have it: what families of them differ in are options.
namespace lathe::nn {

/// Which tokens see which, in one call of a model.
class AttentionContext {
 public:
  /// mask i64 [B, T]: 0 for padding, which no other token sees; none: no padding. segments i64 [B, T]: a token sees
  /// those of its own number alone, as of several texts in one row; none: all are one text.
  explicit AttentionContext(const Dim& length, const std::optional<Tensor>& mask = {},
                            const std::optional<Tensor>& segments = {})
      : length_(length), mask_(mask), segments_(segments) {}
  /// New tokens see those before them too, whose keys and values are in the cache.
  AttentionContext(const Dim& length, const KeyValueCache& cache) : length_(length), cache_(cache) {}
  /// Every query sees every key, later ones too, but for padding: mask i64 [B, S] of the keys; none: no padding.
  static AttentionContext bidirectional(const std::optional<Tensor>& mask = {});
  /// The same with a term that is added to the scores, [h, T, S] or [B, h, T, S], after their scale and their cap.
  AttentionContext with_bias(const Tensor& bias) const;

  struct Options {
    double scale = 1;                         ///< of the scores
    double soft_cap = 0;                      ///< scores become cap * tanh(score / cap); 0: they stay
    std::optional<std::int64_t> window = {};  ///< query i sees keys j with i - window < j <= i
  };
  /// Causal attention: q [B, h, T, d], k and v [B, kv, T, d], each head of theirs serving h / kv of q in a row ->
  /// [B, h, T, d]. Every query sees itself, padding too, so that no row of weights is empty. Bidirectional: k and v
  /// [B, kv, S, d]; where all keys are padding, a query gives 0. Throws UserError [attention_options] for options out
  /// of range, such as a window without order, [attention_heads] where kv does not divide h.
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Options& options,
                Where at = Where::current()) const;

 private:
  Tensor allowed(const Graph& g, std::optional<std::int64_t> window) const;
  Tensor weights(const Tensor& scores, std::optional<std::int64_t> window) const;

  Dim length_;
  std::optional<Tensor> mask_, segments_;
  std::optional<KeyValueCache> cache_;
  bool is_causal_ = true;
  std::optional<Tensor> bias_ = {};
};

/// How q, k and v come from one input.
enum class Projections : std::uint8_t {
  separate,     ///< three layers: q_name, k_name, v_name
  stacked,      ///< one layer of h + 2 kv heads: all of q, all of k, all of v
  interleaved,  ///< one layer of h heads, each of which gives q, k and v (GPT-NeoX)
};

/// RMS norms of q and k: of each head, or of all heads at once.
enum class QueryNorm : std::uint8_t { none, head, all };

struct SelfAttentionOptions {
  Dim hidden, h, kv, d;  ///< width, heads, heads of keys and values, size of a head
  DType dtype = f32;
  Projections projections = Projections::separate;
  std::string q_name = "q_proj", k_name = "k_proj", v_name = "v_proj", o_name = "o_proj";
  std::string stacked_name = "qkv_proj";  ///< of the one layer, where there is one
  bool bias = false, o_bias = false;
  bool in_out = false;  ///< weights as [in, out]
  QueryNorm norm = QueryNorm::none;
  NormOptions norm_options = {};
  AttentionContext::Options attention = {};
};

/// [B, T, hidden] -> [B, T, hidden]: projections, norms of q and k, rotation, attention, output layer.
class SelfAttention : public Module {
 public:
  SelfAttention(const Module& parent, std::string_view name, const SelfAttentionOptions& options,
                Where at = Where::current());
  /// `tables`: none for models that know positions otherwise.
  Tensor operator()(const Tensor& x, const AttentionContext& context, const std::optional<RotaryTables>& tables = {},
                    Where at = Where::current()) const;
  /// Cross-attention: queries of x [B, T, hidden], keys and values of source [B, S, hidden] -> [B, T, hidden]. The
  /// projections are separate.
  Tensor across(const Tensor& x, const Tensor& source, const AttentionContext& context,
                Where at = Where::current()) const;
  /// The same over keys and values that another graph has kept.
  Tensor across(const Tensor& x, const SourceCache& source, const AttentionContext& context,
                Where at = Where::current()) const;
  /// Writes keys and values of source [sources, S, hidden] into the states that SourceCache tells of, in
  /// cache_dtype().
  void keep_source(const Tensor& source, std::optional<DType> dtype = {}, Where at = Where::current()) const;

 private:
  struct Heads {
    Tensor q, k, v;  // [B, h, T, d], [B, kv, T, d] twice
  };
  Heads project(const Tensor& x, const Tensor& source) const;
  Tensor attend(const Heads& heads, const AttentionContext& context) const;
  void require_separate(const Where& at) const;
  Tensor query_heads(const Tensor& x, const Dim& heads, const std::optional<RmsNorm>& norm) const;

  SelfAttentionOptions options_;
  std::optional<Linear> stacked_, q_, k_, v_;
  std::optional<RmsNorm> q_norm_, k_norm_;
  Linear o_;
};

}  // namespace lathe::nn
