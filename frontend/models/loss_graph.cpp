#include "frontend/models/loss_graph.h"

namespace lathe::models {

namespace {

/// Returns a graph of this name whose output "loss" is the tensor that `build` returns.
template <class Build>
LossGraph around(std::string_view name, Build build) {
  Graph g(name);
  g.output("loss", build(g));
  auto initializers = g.initializers();
  return {g.finish(), std::move(initializers)};
}

Tensor input_tokens(Graph& g) { return g.input("tokens", i64, {Dim("B"), Dim("T") + 1}); }

}  // namespace

LossGraph loss_graph(const GptConfig& config) {
  return around("gpt", [&](Graph& g) { return Gpt(g, config).loss(input_tokens(g)); });
}

LossGraph loss_graph(const LlamaConfig& config) {
  return around("llama", [&](Graph& g) { return Llama(g, config).loss(input_tokens(g)); });
}

LossGraph loss_graph(const EncoderDecoderConfig& config) {
  return around("encoder_decoder", [&](Graph& g) {
    const EncoderDecoder model(g, config);
    const Tensor src = g.input("src", i64, {Dim("B"), Dim("S")});
    return model.loss(src, g.input("tgt", i64, {Dim("B"), Dim("T") + 1}));
  });
}

GptConfig gpt2_config(int layers, std::int64_t d_model, std::int64_t heads) {
  return {.vocab = Dim("vocab", 50257),
          .context = Dim("context", 1024),
          .d_model = Dim("d_model", d_model),
          .h = Dim("h", heads),
          .layers = layers};
}

}  // namespace lathe::models
