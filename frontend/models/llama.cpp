#include "frontend/models/llama.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"

namespace lathe::models {

namespace {

nn::LinearOptions projection(const LlamaConfig& config) {
  return {.dtype = config.dtype, .bias = false, .flat = true};
}
nn::NormOptions norm(const LlamaConfig& config) {
  return {.dtype = config.dtype, .eps = config.norm_eps, .flat = true};
}

/// Returns h * head_dim, as d_model if they are equal so that the dim keeps its name.
Dim joined_heads(const LlamaConfig& config) {
  const Dim width = config.h * config.head_dim;
  return width == config.d_model ? config.d_model : width;
}
Dim key_width(const LlamaConfig& config) { return Dim("d_kv", config.kv_heads * config.head_dim); }

Dim groups_of(const LlamaConfig& config, const Where& at) {
  const auto groups = config.h.divided_by(config.kv_heads);
  if (!groups)
    throw UserError(
        Location(at), "llama",
        fmt::format("{} heads cannot share {} key heads", config.h.to_string(), config.kv_heads.to_string()),
        "attention_heads", "make h a multiple of kv_heads");
  return Dim("groups", *groups);
}

}  // namespace

Llama::Llama(const Module& parent, const LlamaConfig& config, Where at)
    : Module(parent),
      config_(config),
      groups_(groups_of(config, at)),
      embed_(*this, "embed", config.vocab, config.d_model,
             {.dtype = config.dtype, .table = Init::normal({.deviation = 0.02})}, at),
      norm_(*this, "norm", config.d_model, norm(config), at),
      lm_head_(*this, "lm_head", config.d_model, config.vocab, projection(config), at) {
  if (config.stacked)
    stacked_.emplace(
        *this, "layers", config.layers, [&](const Module& layer) { return Block(layer, "", config, at); }, at);
  for (int i = 0; i < config.layers && !config.stacked; ++i)
    blocks_.emplace_back(*this, fmt::format("layers.{}", i), config, at);
}

Llama::Block::Block(const Module& parent, std::string_view name, const LlamaConfig& config, const Where& at)
    : Module(parent, name, "LlamaBlock"),
      input_norm(*this, "input_norm", config.d_model, norm(config), at),
      post_norm(*this, "post_norm", config.d_model, norm(config), at),
      q_proj(*this, "q_proj", config.d_model, joined_heads(config), projection(config), at),
      k_proj(*this, "k_proj", config.d_model, key_width(config), projection(config), at),
      v_proj(*this, "v_proj", config.d_model, key_width(config), projection(config), at),
      o_proj(*this, "o_proj", joined_heads(config), config.d_model, projection(config), at),
      mlp(*this, "", config.d_model, config.d_ff, {.dtype = config.dtype, .flat = true}, at) {}

Tensor Llama::attention(const Block& block, const Tensor& x, const nn::RotaryTables& rotary,
                        const Tensor& forbidden) const {
  const Dim &h = config_.h, &kv = config_.kv_heads, &hd = config_.head_dim;
  const Tensor q = rope(nn::split_heads(block.q_proj(x), h, hd), rotary.cos, rotary.sin);   // [B, h, T, hd]
  const Tensor k = rope(nn::split_heads(block.k_proj(x), kv, hd), rotary.cos, rotary.sin);  // [B, kv, T, hd]
  const Tensor v = nn::split_heads(block.v_proj(x), kv, hd);                                // [B, kv, T, hd]
  const Tensor keys = nn::repeat_heads(k, groups_), values = nn::repeat_heads(v, groups_);  // [B, h, T, hd]
  const Tensor scores = matmul(q, keys.transpose(-2, -1)) / std::sqrt(static_cast<double>(hd.number()));
  const Tensor weights = scores.masked_fill(forbidden, -std::numeric_limits<double>::infinity()).softmax(-1);
  return block.o_proj(nn::merge_heads(matmul(weights, values), block.o_proj.weight().shape()[1]));  // [B, T, d_model]
}

Tensor Llama::apply(const Block& block, const Tensor& x, const nn::RotaryTables& rotary,
                    const Tensor& forbidden) const {
  const Tensor attended = x + attention(block, block.input_norm(x), rotary, forbidden);
  return attended + block.mlp(block.post_norm(attended));
}

Tensor Llama::logits(const Tensor& tokens, Where at) const {
  const Graph g = tokens.graph(at);
  const Dim T = tokens.size(1, at);
  const DType dtype = embed_.table().dtype();
  const nn::RotaryTables rotary = nn::rotary_tables(g, T, config_.head_dim, dtype, config_.theta);  // [T, hd]
  const Tensor forbidden = ~g.causal_mask(T, T);                                                    // [T, T]
  Tensor x = embed_(tokens, at);                                                                    // [B, T, d_model]
  if (stacked_)
    x = (*stacked_)(x, [&](const Block& block, const Tensor& h) { return apply(block, h, rotary, forbidden); }, at);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto scope = g.scope(fmt::format("layers.{}", i));
    x = apply(blocks_[i], x, rotary, forbidden).named(fmt::format("block_{}", i));
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
