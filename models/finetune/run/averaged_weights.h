#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "models/finetune/optimizer_settings.h"
#include "runtime/train/trainer.h"

namespace lathe {

/// The weights that a run evaluates and writes: with schedule-free AdamW, the averages of the trained ones.
/// Checkpoints contain the trained ones and the states, so that a run resumes with the same bits.
class AveragedWeights {
 public:
  AveragedWeights() = default;  ///< no averages
  AveragedWeights(const OptimizerSettings& optimizer, const ir::Graph& step);

  /// Returns the graph that evaluates the run's weights on the store of the step.
  ir::Graph evaluation(const ir::Graph& forward) const;
  /// Returns these parameters as whole tensors, with averages in place of trained ones, on the first process, and
  /// nothing on the others. Must be called by all processes. Throws UserErrors of Trainer::wholes().
  Tensors wholes(const Trainer& trainer, std::span<const std::string> parameters) const;
  /// Returns all parameters in the same way.
  Parameters whole_parameters(const Trainer& trainer) const;

 private:
  Tensors averages(const Trainer& trainer, std::span<const std::string> parameters) const;

  std::vector<std::string> averaged_;  ///< names of the parameters that have an average
  double beta1_ = 0;
};

}  // namespace lathe
