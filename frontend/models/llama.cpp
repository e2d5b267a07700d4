#include "frontend/models/llama.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "frontend/ops.h"

namespace lathe::models {

namespace {

nn::LinearOptions projection(const LlamaConfig& config) {
  return {.dtype = config.dtype, .bias = false, .flat = true};
}
nn::NormOptions norm(const LlamaConfig& config) {
  return {.dtype = config.dtype, .eps = config.norm_eps, .flat = true};
}

Dim groups_of(const Graph& g, const LlamaConfig& config, const Where& at) {
  const auto groups = config.h.divided_by(config.kv_heads);
  if (!groups)
    throw UserError(
        detail::line_of(g.builder(at), at), "llama",
        fmt::format("{} heads cannot share {} key heads", config.h.to_string(), config.kv_heads.to_string()),
        "attention_heads", "make h a multiple of kv_heads");
  return Dim("groups", *groups);
}

}  // namespace

Llama::Llama(Graph& g, const LlamaConfig& config, Where at)
    : g_(g),
      config_(config),
      groups_(groups_of(g, config, at)),
      embed_(g, "embed", config.vocab, config.d_model, {.dtype = config.dtype, .table = Init::normal(0.02)}),
      norm_(g, "norm", config.d_model, norm(config)),
      lm_head_(g, "lm_head", config.d_model, config.vocab, projection(config)) {
  const CallSite line(g.builder(), at);
  for (int i = 0; i < config.layers; ++i) blocks_.push_back(block(i));
}

Llama::Block Llama::block(int i) const {
  const auto scope = g_.scope(fmt::format("layers.{}", i));
  const Dim &d = config_.d_model, q = config_.h * config_.head_dim, kv("d_kv", config_.kv_heads * config_.head_dim);
  const auto options = projection(config_);
  return {.input_norm = nn::RmsNorm(g_, "input_norm", d, norm(config_)),
          .post_norm = nn::RmsNorm(g_, "post_norm", d, norm(config_)),
          .q_proj = nn::Linear(g_, "q_proj", d, q == d ? d : q, options),
          .k_proj = nn::Linear(g_, "k_proj", d, kv, options),
          .v_proj = nn::Linear(g_, "v_proj", d, kv, options),
          .o_proj = nn::Linear(g_, "o_proj", q == d ? d : q, d, options),
          .mlp = nn::SwiGlu(g_, d, config_.d_ff, config_.dtype)};
}

Tensor Llama::attention(const Block& block, const Tensor& x, const nn::RotaryTables& rotary,
                        const Tensor& forbidden) const {
  const Dim &h = config_.h, &kv = config_.kv_heads, &hd = config_.head_dim;
  const Tensor q = rope(nn::split_heads(block.q_proj(x), h, hd), rotary.cos, rotary.sin);   // [B, h, T, hd]
  const Tensor k = rope(nn::split_heads(block.k_proj(x), kv, hd), rotary.cos, rotary.sin);  // [B, kv, T, hd]
  const Tensor v = nn::split_heads(block.v_proj(x), kv, hd);                                // [B, kv, T, hd]
  const Tensor keys = nn::repeat_heads(k, groups_), values = nn::repeat_heads(v, groups_);  // [B, h, T, hd]
  const Tensor scores = matmul(q, keys.transpose(-2, -1)) / std::sqrt(static_cast<double>(hd.value().value_or(1)));
  const Tensor weights = scores.masked_fill(forbidden, -std::numeric_limits<double>::infinity()).softmax(-1);
  return block.o_proj(nn::merge_heads(matmul(weights, values), block.o_proj.weight().size(1)));  // [B, T, d_model]
}

Tensor Llama::logits(const Tensor& tokens, Where at) const {
  const Dim T = tokens.size(1, at);
  const nn::RotaryTables rotary =
      nn::rotary_tables(g_, T, config_.head_dim, config_.dtype, config_.theta);  // [T, hd]
  const Tensor forbidden = ~g_.causal_mask(T, T);                                // [T, T]
  Tensor x = embed_(tokens, at);                                                 // [B, T, d_model]
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto scope = g_.scope(fmt::format("layers.{}", i));
    const Block& block = blocks_[i];
    x = x + attention(block, block.input_norm(x), rotary, forbidden);
    x = x + block.mlp(block.post_norm(x));
    x = x.named(fmt::format("block_{}", i));
  }
  return lm_head_(norm_(x)).named("logits");  // [B, T, vocab]
}

Tensor Llama::loss(const Tensor& tokens, Where at) const {
  const Dim length = tokens.size(1, at);                       // T + 1
  const Tensor given = tokens.slice(1, 0, length - 1, 1, at);  // [B, T]
  const Tensor following = tokens.slice(1, 1, length, 1, at);  // [B, T]
  return cross_entropy(logits(given, at), following, {}, 0, at);
}

}  // namespace lathe::models
