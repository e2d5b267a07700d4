#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/attention/key_value_cache.h"
#include "frontend/nn/attention/rope.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/norm.h"

/// Attention as in pretrained models, with options for the differences between families.
namespace lathe::nn {

/// The attention mask of one model call.
class AttentionContext {
 public:
  /// mask i64 [B, T]: 0 for padding, which no other token sees. None: no padding. segments i64 [B, T]: a token sees
  /// only tokens with its own number, such as for several texts in one row. None: all tokens are one text.
  explicit AttentionContext(const Dim& length, const std::optional<Tensor>& mask = {},
                            const std::optional<Tensor>& segments = {})
      : length_(length), mask_(mask), segments_(segments) {}
  /// New tokens also see the previous ones, whose keys and values are in the cache.
  AttentionContext(const Dim& length, const KeyValueCache& cache) : length_(length), cache_(cache) {}
  /// Every query sees every key, including later ones, except padding: mask i64 [B, S] of the keys. None: no padding.
  static AttentionContext bidirectional(const std::optional<Tensor>& mask = {});
  /// Returns the same context with a bias added to the scores, [h, T, S] or [B, h, T, S], after scaling and soft cap.
  AttentionContext with_bias(const Tensor& bias) const;

  struct Options {
    double scale = 1;                         ///< of the scores
    double soft_cap = 0;                      ///< scores become cap * tanh(score / cap); 0: off
    std::optional<std::int64_t> window = {};  ///< query i sees keys j with i - window < j <= i
  };
  /// Causal attention: q [B, h, T, d], k and v [B, kv, T, d] -> [B, h, T, d]. Each key head serves h / kv consecutive
  /// query heads. Every query sees itself, even if it is padding, so that no row of weights is empty. Bidirectional:
  /// k and v [B, kv, S, d]; a query whose keys are all padding yields 0. Throws UserError [attention_options] for
  /// options out of range, such as a window without causal order, and [attention_heads] unless kv divides h.
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

/// How q, k and v are projected from one input.
enum class Projections : std::uint8_t {
  separate,     ///< three layers: q_name, k_name, v_name
  stacked,      ///< one layer of h + 2 kv heads: all of q, all of k, all of v
  interleaved,  ///< one layer of h heads, each with its q, k and v (GPT-NeoX)
};

/// RMS norms of q and k: per head, or over all heads at once.
enum class QueryNorm : std::uint8_t { none, head, all };

struct SelfAttentionOptions {
  Dim hidden, h, kv, d;             ///< width, query heads, key/value heads, head size
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
  Projections projections = Projections::separate;
  std::string q_name = "q_proj", k_name = "k_proj", v_name = "v_proj", o_name = "o_proj";
  std::string stacked_name = "qkv_proj";  ///< name of the single layer, unless they are separate
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
  /// `tables`: none for models without rotary embedding.
  Tensor operator()(const Tensor& x, const AttentionContext& context, const std::optional<RotaryTables>& tables = {},
                    Where at = Where::current()) const;
  /// Cross-attention: queries from x [B, T, hidden], keys and values from source [B, S, hidden] -> [B, T, hidden].
  /// Requires separate projections.
  Tensor across(const Tensor& x, const Tensor& source, const AttentionContext& context,
                Where at = Where::current()) const;
  /// The same with keys and values that another graph cached by keep_source().
  Tensor across(const Tensor& x, const SourceCache& source, const AttentionContext& context,
                Where at = Where::current()) const;
  /// Writes the keys and values of source [sources, S, hidden] to the states of SourceCache, in cache_dtype().
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
