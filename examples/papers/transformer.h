#pragma once

#include "frontend/dsl.h"

/// The parts of a Transformer that several papers share.
namespace lathe::papers {

/// Multi-head attention with one projection for q, k and v.
struct Attention : nn::Layer<Attention> {
  Attention(const Module& parent, std::string_view name, const Dim& d, const Dim& h)
      : Layer(parent, name, "Attention"), heads(h), qkv(*this, "qkv", d, d * 3), out(*this, "out", d, d) {}
  Tensor forward(const Tensor& x, bool causal) const {
    const Dim d = x.size(-1);
    const auto parts = qkv(x).chunk(3, -1);
    const auto split = [&](const Tensor& part) { return nn::split_heads(part, heads, d / heads); };
    return out(nn::merge_heads(attention(split(parts[0]), split(parts[1]), split(parts[2]), causal), d));
  }
  Dim heads;
  nn::Linear qkv, out;
};

/// A pre-norm block.
struct Block : nn::Layer<Block> {
  Block(const Module& parent, std::string_view name, const Dim& d, const Dim& h)
      : Layer(parent, name, "Block"),
        norm1(*this, "norm1", d),
        norm2(*this, "norm2", d),
        attention(*this, "attention", d, h),
        mlp(*this, "mlp", d, d * 4, {.activation = nn::Activation::gelu}) {}
  Tensor forward(const Tensor& x, bool causal) const {
    const Tensor y = x + attention(norm1(x), causal);
    return y + mlp(norm2(y));
  }
  nn::LayerNorm norm1, norm2;
  Attention attention;
  nn::FeedForward mlp;
};

struct Blocks : nn::Layer<Blocks> {
  Blocks(const Module& parent, std::string_view name, std::int64_t layers, const Dim& d, const Dim& h)
      : Layer(parent, name, "Blocks"), norm(*this, "norm", d) {
    for (std::int64_t i = 0; i < layers; ++i) blocks.emplace_back(*this, std::to_string(i), d, h);
  }
  Tensor forward(Tensor x, bool causal) const {
    for (const Block& block : blocks) x = block(x, causal);
    return norm(x);
  }
  std::vector<Block> blocks;
  nn::LayerNorm norm;
};

}  // namespace lathe::papers
