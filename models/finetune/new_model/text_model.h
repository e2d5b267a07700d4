#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "frontend/nn/module.h"
#include "frontend/train/schedule.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// Settings that determine a training run, except its text. Checkpoints store all of them.
struct ModelSettings {
  std::string model = "llama";  ///< llama or gpt
  std::int64_t layers = 6, d_model = 384, heads = 6, context = 64, vocab = 0;
  double dropout = 0;
  DType precision = f32;  ///< bf16 and f16: mixed precision
  /// Returns the settings by name for a checkpoint. A run resumes only if they are equal.
  std::map<std::string, std::string> to_strings() const;
};

struct OptimizerSettings {
  double lr = 1e-3, weight_decay = 0.1, clip = 1.0;
  std::int64_t steps = 900;
  std::int64_t warmup = 0;  ///< steps up to the peak rate; 0: a tenth of all steps, at most 40
  std::int64_t warmup_steps() const {
    return warmup > 0 ? warmup : std::max<std::int64_t>(1, std::min<std::int64_t>(40, steps / 10));
  }
  /// Returns the learning rate schedule: a linear warm-up to `lr`, then half a cosine down to `floor`. A single step
  /// uses `lr`. Throws UserError [train_warmup] if the warm-up leaves no step.
  Schedule schedule(double floor) const;
  /// Returns the settings by name for a checkpoint. A run that resumes with other values reports them.
  std::map<std::string, std::string> to_strings() const;
};

/// A decoder-only language model and its graphs with unknown batch and sequence dims. For evaluation, compile
/// `forward` with Mode::evaluation.
struct LanguageModel {
  nn::Module model;
  ir::Graph forward;   ///< tokens i64 [B, T+1] -> "loss"
  ir::Graph step;      ///< the same with backward and AdamW, in the requested precision
  ir::Graph generate;  ///< tokens i64 [B, T] -> "logits" [B, T, vocab]
};
/// Returns the hidden size of Llama's feed-forward layers.
std::int64_t feed_forward_size(const ModelSettings& s);
/// Returns only the modules.
nn::Module build_model(const ModelSettings& s);
LanguageModel build_language_model(const ModelSettings& model, const OptimizerSettings& optimizer);

}  // namespace lathe
