#include "frontend/models/encoder_decoder.h"

#include <fmt/core.h>

#include <cmath>

#include "frontend/nn/attention/positions.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"

namespace lathe::models {

namespace {

nn::EmbeddingOptions table(const EncoderDecoderConfig& config) {
  const double width = static_cast<double>(config.d_model.number());
  return {.dtype = config.dtype, .table = Init::normal({.deviation = 1 / std::sqrt(width)})};
}
nn::AttentionOptions attention(const EncoderDecoderConfig& config) {
  return {.dtype = config.dtype, .d_k = config.d_k, .d_v = config.d_v, .dropout = config.dropout};
}
nn::FeedForwardOptions feed_forward(const EncoderDecoderConfig& config) {
  return {.dtype = config.dtype, .activation = config.activation, .dropout = config.dropout};
}
nn::NormOptions norm(const EncoderDecoderConfig& config) { return {.dtype = config.dtype, .eps = config.norm_eps}; }

}  // namespace

EncoderDecoder::EncoderDecoder(const Module& parent, const EncoderDecoderConfig& config, Where at)
    : Module(parent),
      config_(config),
      src_embedding_(*this, "src_embedding", config.src_vocab, config.d_model, table(config), at),
      tgt_embedding_(*this, "tgt_embedding", config.tgt_vocab, config.d_model, table(config), at),
      generator_(*this, "generator", config.d_model, config.tgt_vocab,
                 {.dtype = config.dtype, .weight = Init::xavier_uniform()}, at),
      dropout_(config.dropout, at) {
  for (int i = 0; i < config.layers; ++i) encoder_.emplace_back(*this, fmt::format("encoder.{}", i), config, at);
  for (int i = 0; i < config.layers; ++i) decoder_.emplace_back(*this, fmt::format("decoder.{}", i), config, at);
  if (config.pre_norm) {
    encoder_norm_.emplace(*this, "encoder.norm", config.d_model, norm(config), at);
    decoder_norm_.emplace(*this, "decoder.norm", config.d_model, norm(config), at);
  }
}

EncoderDecoder::EncoderLayer::EncoderLayer(const Module& parent, std::string_view name,
                                           const EncoderDecoderConfig& config, const Where& at)
    : Module(parent, name, "EncoderLayer"),
      self(*this, "self", config.d_model, config.h, attention(config), at),
      ffn(*this, "ffn", config.d_model, config.d_ff, feed_forward(config), at),
      norm1(*this, "norm1", config.d_model, norm(config), at),
      norm2(*this, "norm2", config.d_model, norm(config), at) {}

EncoderDecoder::DecoderLayer::DecoderLayer(const Module& parent, std::string_view name,
                                           const EncoderDecoderConfig& config, const Where& at)
    : Module(parent, name, "DecoderLayer"),
      self(*this, "self", config.d_model, config.h, attention(config), at),
      cross(*this, "cross", config.d_model, config.h, attention(config), at),
      ffn(*this, "ffn", config.d_model, config.d_ff, feed_forward(config), at),
      norm1(*this, "norm1", config.d_model, norm(config), at),
      norm2(*this, "norm2", config.d_model, norm(config), at),
      norm3(*this, "norm3", config.d_model, norm(config), at) {}

Tensor EncoderDecoder::source_mask(const Tensor& src, Where at) const {
  const Operand ids(src, at);
  return (ids != config_.pad).unsqueeze(1).unsqueeze(2).to(i64);  // [B, 1, 1, S]
}

Tensor EncoderDecoder::target_mask(const Tensor& tgt, Where at) const {
  const Operand ids(tgt, at);
  const Dim T = tgt.size(1, at);
  const Tensor words = (ids != config_.pad).unsqueeze(1).unsqueeze(2);  // [B, 1, 1, T]
  return (words & tgt.graph(at).causal_mask(T, T)).to(i64);             // [B, 1, T, T]
}

Tensor EncoderDecoder::embed(const nn::Embedding& table, const Tensor& ids, const Where& at) const {
  const double scale = std::sqrt(static_cast<double>(config_.d_model.number()));
  const Tensor positions = nn::sinusoidal_positions(ids.graph(at), ids.size(1, at), config_.d_model,
                                                    table.table().dtype());  // [S, d_model]
  return dropout_(table(ids, at) * scale + positions);                       // [B, S, d_model]
}

template <class Sublayer>
Tensor EncoderDecoder::residual(const nn::LayerNorm& norm, const Tensor& x, Sublayer sublayer) const {
  return config_.pre_norm ? x + dropout_(sublayer(norm(x))) : norm(x + dropout_(sublayer(x)));
}

Tensor EncoderDecoder::encode(const Tensor& src, const Tensor& mask, Where at) const {
  Tensor x = embed(src_embedding_, src, at).named("encoder_input");  // [B, S, d_model]
  for (std::size_t i = 0; i < encoder_.size(); ++i) {
    const auto scope = x.graph().scope(fmt::format("encoder.{}", i));
    const EncoderLayer& layer = encoder_[i];
    x = residual(layer.norm1, x, [&](const Tensor& y) { return layer.self(y, y, mask); });
    x = residual(layer.norm2, x, [&](const Tensor& y) { return layer.ffn(y); });
    x = x.named(fmt::format("encoder_layer_{}", i));
  }
  return (encoder_norm_ ? (*encoder_norm_)(x) : x).named("memory");
}

Tensor EncoderDecoder::decode(const Tensor& tgt, const Tensor& memory, const Tensor& source_mask, Where at) const {
  const Tensor mask = target_mask(tgt, at);
  Tensor y = embed(tgt_embedding_, tgt, at);  // [B, T, d_model]
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    const auto scope = y.graph().scope(fmt::format("decoder.{}", i));
    const DecoderLayer& layer = decoder_[i];
    y = residual(layer.norm1, y, [&](const Tensor& z) { return layer.self(z, z, mask); });
    y = residual(layer.norm2, y, [&](const Tensor& z) { return layer.cross(z, memory, source_mask); });
    y = residual(layer.norm3, y, [&](const Tensor& z) { return layer.ffn(z); });
    y = y.named(fmt::format("decoder_layer_{}", i));
  }
  return decoder_norm_ ? (*decoder_norm_)(y) : y;
}

Tensor EncoderDecoder::logits(const Tensor& src, const Tensor& tgt, Where at) const {
  const Tensor mask = source_mask(src, at);
  return generator_(decode(tgt, encode(src, mask, at), mask, at)).named("logits");  // [B, T, tgt_vocab]
}

Tensor EncoderDecoder::loss(const Tensor& src, const Tensor& tgt, Where at) const {
  const Dim length = tgt.size(1, at);                       // T + 1
  const Tensor given = tgt.slice(1, 0, length - 1, 1, at);  // [B, T]
  const Tensor following = tgt.slice(1, 1, length, 1, at);  // [B, T]
  return cross_entropy(logits(src, given, at), following, config_.pad, config_.label_smoothing, at);
}

}  // namespace lathe::models
