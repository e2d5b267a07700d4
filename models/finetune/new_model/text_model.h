#pragma once

#include <cstdint>
#include <string>

#include "frontend/nn/module.h"
#include "ir/tensor/graph.h"
#include "models/finetune/new_model/text_model_options.h"
#include "models/finetune/optimizer_settings.h"
#include "runtime/train/run_settings.h"

namespace lathe {

/// The architecture of a new model, with the vocabulary of a text.
struct TextModelSettings : TextModelOptions {
  std::int64_t vocab = 0;
  /// Returns the settings by name for a checkpoint. A run resumes only if they are equal.
  Settings to_strings() const;
};

/// A decoder-only language model and its graphs with unknown batch and sequence dims. For evaluation, compile
/// `forward` with Mode::evaluation.
struct TextModel {
  nn::Module model;
  ir::Graph forward;   ///< tokens i64 [B, T+1] -> "loss"
  ir::Graph step;      ///< the same with backward and AdamW, in the requested precision
  ir::Graph generate;  ///< tokens i64 [B, T] -> "logits" [B, T, vocab]
};
/// Returns the hidden size of Llama's feed-forward layers.
std::int64_t feed_forward_size(const TextModelSettings& s);
/// Returns only the modules.
nn::Module text_modules(const TextModelSettings& s);
/// Throws UserErrors [train_model] for an unknown kind and for dropout of a model without it, [train_heads],
/// [train_warmup].
TextModel build_text_model(const TextModelSettings& model, const OptimizerSettings& optimizer, std::int64_t steps);

}  // namespace lathe
