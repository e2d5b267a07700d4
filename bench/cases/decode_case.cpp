#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "bench/cases/step_cases.h"
#include "frontend/dsl.h"
#include "frontend/nn/feed_forward.h"
#include "ir/tensor/op/op.h"

namespace lathe::bench {

namespace {

constexpr std::int64_t layers = 12, heads = 12, width = 768, vocab = 50257;

/// GPT-2's layers for one token, with the sizes and names of models::Gpt.
class Decoder {
 public:
  Decoder(Graph& g, std::int64_t context, CacheWrite write)
      : g_(g),
        context_(context),
        write_(write),
        position_(g.input("position", i64, {1})),
        token_(g.input("token", i64, {1})) {}

  /// [1, vocab]
  Tensor logits() {
    const Tensor wte = g_.parameter("wte", f32, {Dim(vocab), d_}, Init::normal({.deviation = 0.02}));
    const Tensor wpe = g_.parameter("wpe", f32, {Dim(context_), d_}, Init::normal({.deviation = 0.02}));
    Tensor x = embedding(token_, wte) + embedding(position_, wpe);  // [1, d]
    for (std::int64_t i = 0; i < layers; ++i) {
      const auto scope = g_.scope(fmt::format("h.{}", i));
      x = x + attention(nn::LayerNorm(g_, "ln_1", d_)(x));
      const nn::FeedForward mlp(
          g_, "mlp", d_, Dim("d_ff", 4 * width),
          {.activation = nn::Activation::gelu_tanh, .in_out = true, .up = "c_fc", .down = "c_proj"});
      x = x + mlp(nn::LayerNorm(g_, "ln_2", d_)(x));
    }
    return linear(nn::LayerNorm(g_, "ln_f", d_)(x), wte);
  }

 private:
  /// Appends the keys and values of x [1, d] to those of the previous tokens and attends to them: [1, d].
  Tensor attention(const Tensor& x) {
    const Dim h("h", heads), d_k("d_k", width / heads);
    const auto qkv = nn::Linear(g_, "attn.c_attn", d_, Dim(3 * width), {.in_out = true})(x).split(d_, -1);
    const Tensor q = qkv[0].view({h, 1, d_k});  // [h, 1, d_k]
    const Tensor k = remember("k", qkv[1].view({h, 1, d_k})), v = remember("v", qkv[2].view({h, 1, d_k}));
    const Tensor scores = matmul(q, k.transpose(-2, -1)) / std::sqrt(width / heads);  // [h, 1, context]
    const Tensor later = g_.arange(Dim(context_), i64) > position_;                   // [context]
    const Tensor weights = softmax(masked_fill(scores, later, -std::numeric_limits<double>::infinity()), -1);
    const Tensor joined = matmul(weights, v).view({1, d_});  // [1, d]
    return nn::Linear(g_, "attn.c_proj", d_, d_, {.in_out = true})(joined);
  }

  /// Returns the cache [h, context, d_k] with this token's row written.
  Tensor remember(const std::string& name, const Tensor& row) {
    const Tensor cache =
        g_.state("cache." + name, f32, {Dim("h", heads), Dim(context_), row.size(2)}, Init::normal({.deviation = 1}));
    if (write_ == CacheWrite::append) {
      const Tensor appended = cache.update_rows(position_, row, 1);
      g_.update(cache, appended);
      return appended;
    }
    const Tensor here = (g_.arange(Dim(context_), i64) == position_).unsqueeze(1);  // [context, 1]
    const Tensor updated = where(here, row, cache);
    g_.update(cache, updated);
    return updated;
  }

  Graph& g_;
  std::int64_t context_;
  CacheWrite write_;
  Dim d_{"d_model", width};
  Tensor position_, token_;
};

}  // namespace

StepCase gpt2_decode_case(std::int64_t context, CacheWrite write) {
  StepCase made;
  made.name = fmt::format("decode-{}", context);
  made.what = fmt::format("GPT-2 124M, one token, cache of {}", context);
  made.sizes = {{"layers", layers}, {"d_model", width}, {"heads", heads}};
  Graph g("decode");
  const Tensor logits = Decoder(g, context, write).logits();
  g.update(g.state("logits", f32, logits.shape()), logits);
  g.output("loss", cross_entropy(logits, g.input("next", i64, {1})));
  made.initializers = g.initializers();
  made.forward = g.finish();
  made.trains = false;
  made.inputs.set("token", HostTensor::from_ints({1}, {42}));
  made.inputs.set("next", HostTensor::from_ints({1}, {43}));
  made.inputs.set("position", HostTensor::from_ints({1}, {context - 1}));
  made.tokens = 1;
  for (const ir::ValueId id : made.forward.arguments()) {
    const ir::Node& node = made.forward[id];
    if (node.op->name.value == "input" || node.name == "wpe" || node.name == "logits") continue;
    const auto elements = static_cast<double>(node.type.shape.numel().value().value_or(0));
    made.bytes += elements * static_cast<double>(size_in_bytes(node.type.dtype));
  }
  return made;
}

}  // namespace lathe::bench
