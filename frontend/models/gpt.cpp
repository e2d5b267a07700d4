#include "frontend/models/gpt.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"

namespace lathe::models {

namespace {

/// GPT-2's scales: 0.02, and 0.02 / sqrt(2 * layers) for the layers that write to the residual stream.
Init residual_init(const GptConfig& config) {
  return Init::normal({.deviation = 0.02 / std::sqrt(2.0 * std::max(1, config.layers))});
}

nn::LinearOptions conv1d(const GptConfig& config, const Init& weight) {
  return {.dtype = config.dtype, .in_out = true, .weight = weight};
}

Dim head_size(const GptConfig& config, const Where& at) {
  const auto size = config.d_model.divided_by(config.h);
  if (!size || !size->value())
    throw UserError(Location(at), "gpt",
                    fmt::format("{} cannot be split into {} heads", config.d_model.to_string(), config.h.to_string()),
                    "attention_heads", "make d_model a multiple of h");
  return Dim("d_k", *size);
}

}  // namespace

Gpt::Gpt(const Module& parent, const GptConfig& config, Where at)
    : Module(parent),
      config_(config),
      d_k_(head_size(config, at)),
      wte_(*this, "wte", config.vocab, config.d_model,
           {.dtype = config.dtype, .table = Init::normal({.deviation = 0.02})}, at),
      wpe_(*this, "wpe", config.context, config.d_model,
           {.dtype = config.dtype, .table = Init::normal({.deviation = 0.02})}, at),
      ln_f_(*this, "ln_f", config.d_model, {.dtype = config.dtype, .eps = config.norm_eps}, at),
      dropout_(config.dropout, at) {
  if (config.stacked)
    stacked_.emplace(
        *this, "h", config.layers, [&](const Module& layer) { return Block(layer, "", config, at); }, at);
  for (int i = 0; i < config.layers && !config.stacked; ++i)
    blocks_.emplace_back(*this, fmt::format("h.{}", i), config, at);
}

Gpt::Block::Block(const Module& parent, std::string_view name, const GptConfig& config, const Where& at)
    : Module(parent, name, "GptBlock"),
      ln_1(*this, "ln_1", config.d_model, {.dtype = config.dtype, .eps = config.norm_eps}, at),
      ln_2(*this, "ln_2", config.d_model, {.dtype = config.dtype, .eps = config.norm_eps}, at),
      c_attn(*this, "attn.c_attn", config.d_model, config.d_model * 3,
             conv1d(config, Init::normal({.deviation = 0.02})), at),
      c_proj(*this, "attn.c_proj", config.d_model, config.d_model, conv1d(config, residual_init(config)), at),
      mlp(*this, "mlp", config.d_model, config.d_ff ? *config.d_ff : Dim("d_ff", config.d_model * 4),
          {.dtype = config.dtype,
           .activation = nn::Activation::gelu_tanh,
           .in_out = true,
           .up = "c_fc",
           .down = "c_proj",
           .up_init = Init::normal({.deviation = 0.02}),
           .down_init = residual_init(config)},
          at) {}

Tensor Gpt::attention(const Block& block, const Tensor& x, const Tensor& forbidden) const {
  const auto qkv = block.c_attn(x).split(config_.d_model, -1);  // 3 x [B, T, d_model]
  const Tensor q = nn::split_heads(qkv[0], config_.h, d_k_);    // [B, h, T, d_k]
  const Tensor k = nn::split_heads(qkv[1], config_.h, d_k_);    // [B, h, T, d_k]
  const Tensor v = nn::split_heads(qkv[2], config_.h, d_k_);    // [B, h, T, d_k]
  const double scale = 1 / std::sqrt(static_cast<double>(d_k_.number()));
  const Tensor scores = matmul(q, k.transpose(-2, -1)) * scale;  // [B, h, T, T]
  const Tensor weights = scores.masked_fill(forbidden, -std::numeric_limits<double>::infinity()).softmax(-1);
  return block.c_proj(nn::merge_heads(matmul(dropout_(weights), v), config_.d_model));  // [B, T, d_model]
}

Tensor Gpt::apply(const Block& block, const Tensor& x, const Tensor& forbidden) const {
  const Tensor attended = x + dropout_(attention(block, block.ln_1(x), forbidden));
  return attended + dropout_(block.mlp(block.ln_2(attended)));
}

Tensor Gpt::logits(const Tensor& tokens, Where at) const {
  const Graph g = tokens.graph(at);
  const Dim T = tokens.size(1, at);
  const Tensor positions = wpe_.table().in(g).slice(0, 0, T, 1, at);  // [T, d_model]
  Tensor x = dropout_(wte_(tokens, at) + positions);                  // [B, T, d_model]
  const Tensor forbidden = ~g.causal_mask(T, T);                      // [T, T]
  if (stacked_)
    x = (*stacked_)(x, [&](const Block& block, const Tensor& h) { return apply(block, h, forbidden); }, at);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const auto scope = g.scope(fmt::format("h.{}", i));
    x = apply(blocks_[i], x, forbidden).named(fmt::format("block_{}", i));
  }
  return linear(ln_f_(x), wte_.table().in(g)).named("logits");  // [B, T, vocab]
}

Tensor Gpt::loss(const Tensor& tokens, Where at) const {
  const Dim length = tokens.size(1, at);  // T + 1
  return loss(tokens.slice(1, 0, length - 1, 1, at), tokens.slice(1, 1, length, 1, at), at);
}

Tensor Gpt::loss(const Tensor& tokens, const Tensor& targets, Where at) const {
  return cross_entropy(logits(tokens, at), targets, {}, 0, at);
}

}  // namespace lathe::models
