#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dim.h"
#include "ir/tensor/graph.h"
#include "runtime/train/batches.h"

namespace lathe {

/// Returns the sizes of a run that no input determines (Executable::run), by the number of the step or batch.
using DimsOfStep = std::function<DimBindings(std::int64_t step)>;

/// Another training step over the parameters of a Trainer, such as that of a GAN's generator after that of its
/// critic. Give its graph an optimizer name of its own (TrainingOptions::name) [state_shared].
struct ExtraStep {
  std::string name;           ///< in reports and errors: "generator"
  ir::Graph graph;            ///< made by training_step()
  Batches batches = {};       ///< by the number of runs of this step, from 0; none for a graph without inputs
  std::int64_t every = 1;     ///< runs after every `every`-th step of the Trainer
  std::string loss = "loss";  ///< name of the loss among the outputs
  DimsOfStep dims = {};
};

/// The latest value of a loss.
struct NamedLoss {
  std::string name;
  double value = 0;
};

}  // namespace lathe
