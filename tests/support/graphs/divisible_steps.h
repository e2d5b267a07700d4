#pragma once

#include "frontend/dsl.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/train/step.h"

/// Training steps whose dims divide evenly over meshes of up to four processes per axis.
namespace lathe::test {

inline models::GptConfig divisible_gpt(int layers, double dropout, DType dtype) {
  models::GptConfig config;
  config.vocab = Dim("vocab", 32);
  config.context = Dim("context", 8);
  config.d_model = Dim("d_model", 16);
  config.h = Dim("h", 4);
  config.layers = layers;
  config.dropout = dropout;
  config.dtype = dtype;
  return config;
}

/// Heads in groups of two.
inline models::LlamaConfig divisible_llama(int layers, DType dtype) {
  models::LlamaConfig config;
  config.vocab = Dim("vocab", 32);
  config.d_model = Dim("d_model", 16);
  config.d_ff = Dim("d_ff", 24);
  config.h = Dim("h", 8);
  config.kv_heads = Dim("kv_heads", 4);
  config.head_dim = Dim("head_dim", 4);
  config.layers = layers;
  config.dtype = dtype;
  return config;
}

inline ir::Graph llama_step(const models::LlamaConfig& config, const Optimizer& optimizer,
                            const TrainingOptions& options) {
  Graph g{"llama"};
  const models::Llama model(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  return training_step(g, model.loss(tokens), optimizer, options);
}

inline ir::Graph gpt_step(const models::GptConfig& config, const Optimizer& optimizer,
                          const TrainingOptions& options) {
  Graph g{"gpt"};
  const models::Gpt model(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  return training_step(g, model.loss(tokens), optimizer, options);
}

/// Returns values for a step's arguments: tokens below 32, parameters of at most `most`, states zero, a seed.
Tensors step_arguments(const ir::Graph& step, std::int64_t batch, std::int64_t length, double most = 0.5);

}  // namespace lathe::test
