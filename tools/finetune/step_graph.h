#pragma once

#include <string>
#include <vector>

#include "frontend/nn/module.h"
#include "frontend/pretrained/causal_lm.h"
#include "frontend/train/training.h"
#include "ir/tensor/graph.h"

namespace lathe::tools {

/// What is trained is kept in f32 at least, whatever the files have: small updates would be lost otherwise. Gives the
/// names of all that is trained.
std::vector<std::string> keep_trained_in_f32(const nn::Module& model);

/// The batches of a fine-tuning step, as token_loss() takes them.
struct StepBatches {
  Dim B, T;
  bool packed = false;  ///< rows hold several examples, which do not see each other
};

/// The loss of a model on its batches, and the step that trains what is not frozen; only matrices decay.
struct StepGraphs {
  ir::Graph forward, step;
};
/// Both are computed in `dtype`. `options` say the rest, but what is trained and what decays. UserErrors of
/// training_step().
StepGraphs step_graphs(const pretrained::CausalLm& model, const StepBatches& batches, const Optimizer& optimizer,
                       TrainingOptions options, DType dtype = f32);

}  // namespace lathe::tools
