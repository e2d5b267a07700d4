#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "frontend/nn/module.h"
#include "frontend/train/schedule.h"
#include "ir/tensor/graph.h"

namespace lathe::tools {

/// What decides a training run besides its text. All of it is kept in the checkpoint.
struct ModelSettings {
  std::string model = "llama";  ///< llama or gpt
  std::int64_t layers = 6, d_model = 384, heads = 6, context = 64, vocab = 0;
  double dropout = 0;
  DType precision = f32;  ///< bf16 and f16: mixed precision
  /// The settings by name, as a checkpoint keeps them; a run resumes only where they are the same.
  std::map<std::string, std::string> to_strings() const;
};

struct OptimizerSettings {
  double lr = 1e-3, weight_decay = 0.1, clip = 1.0;
  std::int64_t steps = 900;
  std::int64_t warmup = 0;  ///< steps up to the peak rate; 0: a tenth of all, 40 at most
  std::int64_t warmup_steps() const {
    return warmup > 0 ? warmup : std::max<std::int64_t>(1, std::min<std::int64_t>(40, steps / 10));
  }
  /// The learning rate: up to `lr`, then half a cosine down to `floor`. A single step has `lr`. UserError
  /// [train_warmup] where the warm-up leaves no step.
  Schedule schedule(double floor) const;
  /// The settings by name, as a checkpoint keeps them; a run that goes on with others says so.
  std::map<std::string, std::string> to_strings() const;
};

/// A decoder-only language model and its graphs, dims of batch and sequence unknown. To evaluate, compile `forward`
/// with Mode::evaluation.
struct LanguageModel {
  nn::Module model;
  ir::Graph forward;   ///< tokens i64 [B, T+1] -> "loss"
  ir::Graph step;      ///< the same with backward and AdamW, in the precision asked for
  ir::Graph generate;  ///< tokens i64 [B, T] -> "logits" [B, T, vocab]
};
/// The width of llama's feed-forwards.
std::int64_t feed_forward_size(const ModelSettings& s);
/// The modules alone.
nn::Module build_model(const ModelSettings& s);
LanguageModel build_language_model(const ModelSettings& model, const OptimizerSettings& optimizer);

}  // namespace lathe::tools
