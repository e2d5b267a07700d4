#pragma once

#include <functional>
#include <string>

#include "frontend/dsl.h"
#include "frontend/nn/recurrent/gated_delta_net.h"
#include "frontend/nn/recurrent/mamba2.h"
#include "frontend/nn/recurrent/recurrent.h"
#include "frontend/nn/stacked.h"
#include "frontend/train/step.h"
#include "tests/support/graphs/divisible_steps.h"

/// Training steps of language models with loops, on 6 tokens of a row; the batch divides over meshes.
namespace lathe::test {

/// Applies a layer to [B, T, 16].
using MakeLayer = std::function<Tensor(const nn::Module& parent, const Tensor& x)>;

inline ir::Graph recurrent_step(const std::string& name, DType dtype, const MakeLayer& layer,
                                const TrainingOptions& options = {.clip_norm = 0.5}) {
  Graph g{name};
  const nn::Module model(g);
  const nn::Embedding table(model, "table", Dim("vocab", 32), Dim("d_model", 16), {.dtype = dtype});
  const nn::Linear head(model, "head", Dim("d_model", 16), Dim("vocab", 32), {.dtype = dtype});
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), 7});
  const Tensor y = layer(model, table(tokens.slice(1, 0, 6)));
  return training_step(g, cross_entropy(head(y), tokens.slice(1, 1, 7)), AdamW{.lr = 1e-2}, options);
}

inline ir::Graph lstm_step(DType dtype, const TrainingOptions& options = {.clip_norm = 0.5}) {
  return recurrent_step(
      "lstm", dtype,
      [&](const nn::Module& parent, const Tensor& x) {
        return nn::Lstm(parent, "lstm", Dim("d_model", 16), 16,
                        {.layers = 2, .bidirectional = false, .dtype = dtype})(x);
      },
      options);
}

inline ir::Graph gru_step(DType dtype) {
  return recurrent_step("gru", dtype, [&](const nn::Module& parent, const Tensor& x) {
    return nn::Gru(parent, "gru", Dim("d_model", 16), 8, {.bidirectional = true, .dtype = dtype})(x);
  });
}

inline ir::Graph mamba_step(DType dtype) {
  return recurrent_step("mamba", dtype, [&](const nn::Module& parent, const Tensor& x) {
    const nn::Mamba2Options options{.heads = 4, .head_size = 8, .state_size = 4, .chunk = 3, .dtype = dtype};
    return nn::Mamba2(parent, "mamba", Dim("d_model", 16), options)(x);
  });
}

inline ir::Graph delta_step(DType dtype) {
  return recurrent_step("delta", dtype, [&](const nn::Module& parent, const Tensor& x) {
    const nn::GatedDeltaNetOptions options{
        .key_heads = 2, .value_heads = 4, .key_size = 4, .value_size = 4, .chunk = 3, .dtype = dtype};
    return nn::GatedDeltaNet(parent, "delta", Dim("d_model", 16), options)(x);
  });
}

/// Three layers as one loop, with dropout in its body.
inline ir::Graph stacked_step(DType dtype) {
  return recurrent_step("stacked", dtype, [&](const nn::Module& parent, const Tensor& x) {
    const nn::Stacked<nn::Linear> layers(parent, "h", 3, [&](const nn::Module& layer) {
      return nn::Linear(layer, "fc", Dim("d_model", 16), Dim("d_model", 16), {.dtype = dtype});
    });
    return layers(x, [](const nn::Linear& fc, const Tensor& h) { return h + dropout(tanh(fc(h)), 0.25); });
  });
}

/// GPT-2 with dropout, and a Llama, whose layers are one loop. Matrices have weight decay, and not stacked vectors.
inline ir::Graph stacked_gpt_step(int layers, DType dtype) {
  models::GptConfig config = divisible_gpt(layers, 0.1, dtype);
  config.stacked = true;
  return gpt_step(config, AdamW{.lr = 1e-3}, {.clip_norm = 0.5, .decayed = names_without({"ln_", "bias"})});
}

inline ir::Graph stacked_llama_step(int layers, DType dtype) {
  models::LlamaConfig config = divisible_llama(layers, dtype);
  config.stacked = true;
  return llama_step(config, AdamW{.lr = 1e-3}, {.clip_norm = 0.5, .decayed = names_without({"norm"})});
}

}  // namespace lathe::test
