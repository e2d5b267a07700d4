#include "models/finetune/step_graph.h"

#include "models/pretrained/token_loss.h"

namespace lathe {

std::vector<std::string> keep_trained_in_f32(const nn::Module& model) {
  std::vector<std::string> trained;
  for (const nn::Parameter& parameter : model.parameters()) {
    if (parameter.is_frozen()) continue;
    trained.push_back(parameter.name());
    if (parameter.dtype() != f32 && parameter.dtype() != f64) parameter.store_as(f32);
  }
  return trained;
}

StepGraphs step_graphs(const pretrained::CausalLm& model, const StepBatches& batches, const Optimizer& optimizer,
                       TrainingOptions options, DType dtype) {
  ir::Graph forward = token_loss(model, "finetune", batches.B, batches.T, batches.packed, dtype).finish();
  options.trainable = nn::trainable(model);
  options.decayed = matrices();
  ir::Graph step = training_step(forward, "loss", optimizer, options);
  return {.forward = std::move(forward), .step = std::move(step)};
}

}  // namespace lathe
