#include "tests/cuda/device/decode_steps.h"

#include <fmt/core.h>

#include "frontend/dsl.h"
#include "frontend/nn/attention/self_attention.h"
#include "frontend/nn/feed_forward.h"
#include "ir/tensor/op/op.h"
#include "passes/transforms/dtypes/convert_dtype.h"

namespace lathe::test {

namespace {

constexpr std::int64_t vocab = 50, heads = 4, head_size = 8, width = heads * head_size, positions = 24;

nn::KeyValueCache cache_in(Graph& g, const DecodeStep& step) {
  nn::KeyValueCache cache;
  cache.positions = g.input("positions", i64, {step.batch, 1});
  return cache;
}

Tensor table(Graph& g, const char* name, std::int64_t rows) {
  return g.parameter(name, f32, {Dim(rows), Dim(width)}, Init::normal({.deviation = 0.5}));
}

ir::Graph finished(Graph& g, const Tensor& x, const DecodeStep& step) {
  g.output("logits", linear(x.view({step.batch, width}), table(g, "head", vocab)));
  return step.dtype == f32 ? g.finish() : ir::convert_dtype(g.finish(), f32, step.dtype);
}

}  // namespace

ir::Graph gpt_step(const DecodeStep& step) {
  Graph g("gpt_step");
  const nn::KeyValueCache cache = cache_in(g, step);
  const nn::AttentionContext context(Dim(1), cache);
  const Tensor tokens = g.input("tokens", i64, {step.batch, 1});
  Tensor x = embedding(tokens, table(g, "wte", vocab)) + embedding(*cache.positions, table(g, "wpe", positions));
  for (int i = 0; i < step.layers; ++i) {
    const auto scope = g.scope(fmt::format("h.{}", i));
    const nn::SelfAttention attention(g, "attn",
                                      {.hidden = width,
                                       .h = heads,
                                       .kv = heads,
                                       .d = head_size,
                                       .projections = nn::Projections::stacked,
                                       .bias = true,
                                       .o_bias = true,
                                       .in_out = true});
    x = x + attention(nn::LayerNorm(g, "ln_1", width)(x), context);
    const nn::FeedForward mlp(g, "mlp", width, 4 * width, {.activation = nn::Activation::gelu_tanh, .in_out = true});
    x = x + mlp(nn::LayerNorm(g, "ln_2", width)(x));
  }
  return finished(g, nn::LayerNorm(g, "ln_f", width)(x), step);
}

ir::Graph llama_step(const DecodeStep& step) {
  Graph g("llama_step");
  const nn::KeyValueCache cache = cache_in(g, step);
  const nn::AttentionContext context(Dim(1), cache);
  const nn::RotaryTables rotary = nn::rope_tables(*cache.positions, head_size, {}, f32);
  Tensor x = embedding(g.input("tokens", i64, {step.batch, 1}), table(g, "embed", vocab));
  for (int i = 0; i < step.layers; ++i) {
    const auto scope = g.scope(fmt::format("layers.{}", i));
    const nn::SelfAttention attention(g, "self_attn", {.hidden = width, .h = heads, .kv = heads / 2, .d = head_size});
    x = x + attention(nn::RmsNorm(g, "input_norm", width)(x), context, rotary);
    x = x + nn::GatedFeedForward(g, "mlp", width, 3 * width)(nn::RmsNorm(g, "post_norm", width)(x));
  }
  return finished(g, nn::RmsNorm(g, "norm", width)(x), step);
}

Tensors decode_states(const ir::Graph& graph, std::int64_t capacity) {
  Tensors states;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op->name.value == "input") continue;
    HostTensor value(node.type.dtype, node.type.shape.evaluate({{"capacity", capacity}}));
    const auto salt = static_cast<std::int64_t>(states.size());
    for (std::int64_t i = 0; i < value.numel(); ++i)
      value.set(i, 0.03125 * static_cast<double>((i * 7 + salt * 5) % 41 - 20));
    states.set(node.name, std::move(value));
  }
  return states;
}

Tensors decode_inputs(const DecodeStep& step, std::int64_t position) {
  HostTensor tokens(i64, {step.batch, 1}), at(i64, {step.batch, 1});
  for (std::int64_t i = 0; i < step.batch; ++i) {
    tokens.set_int(i, (position * 13 + i * 29) % vocab);
    at.set_int(i, position - i % 2);
  }
  return {{"tokens", std::move(tokens)}, {"positions", std::move(at)}};
}

}  // namespace lathe::test
