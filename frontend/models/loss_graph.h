#pragma once

#include "frontend/models/encoder_decoder.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "ir/options/init.h"
#include "ir/tensor/graph.h"

namespace lathe::models {

/// A model with the single output "loss", and the initializers of its parameters.
struct LossGraph {
  ir::Graph graph;
  std::vector<Initializer> initializers;
};

/// Input: "tokens" i64 [B, T+1]; each token except the last predicts the next one.
LossGraph loss_graph(const GptConfig& config);
LossGraph loss_graph(const LlamaConfig& config);
/// Inputs: "src" i64 [B, S] and "tgt" i64 [B, T+1].
LossGraph loss_graph(const EncoderDecoderConfig& config);

/// Returns the configuration of GPT-2 124M (Radford et al. 2019), or of a larger GPT-2 with other numbers of layers,
/// widths and heads.
GptConfig gpt2_config(int layers = 12, std::int64_t d_model = 768, std::int64_t heads = 12);

}  // namespace lathe::models
