#pragma once

#include <string>
#include <vector>

#include "frontend/nn/module.h"
#include "frontend/train/training.h"
#include "ir/tensor/graph.h"
#include "models/pretrained/causal_lm.h"

namespace lathe {

/// Stores trained parameters in at least f32, whatever the dtype of the files, because small updates would be lost
/// otherwise. Returns the names of all trained parameters.
std::vector<std::string> keep_trained_in_f32(const nn::Module& model);

/// Batches of a fine-tuning step, as token_loss() expects them.
struct StepBatches {
  Dim B, T;
  bool packed = false;  ///< rows contain several examples, which do not attend to each other
};

/// The loss of a model, and the step that trains its parameters that are not frozen. Only matrices have weight decay.
struct StepGraphs {
  ir::Graph forward, step;
};
/// Builds both graphs with compute dtype `dtype`. `options` sets everything except the trained and decayed
/// parameters. Throws UserErrors of training_step().
StepGraphs step_graphs(const pretrained::CausalLm& model, const StepBatches& batches, const Optimizer& optimizer,
                       TrainingOptions options, DType dtype = f32);

}  // namespace lathe
