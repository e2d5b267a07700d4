#pragma once

#include <cstdint>
#include <span>

#include "ir/support/tensors/tensors.h"
#include "runtime/train/extra_step.h"

namespace lathe {

/// Report of a completed step.
struct StepReport {
  std::int64_t step = 0;  ///< completed steps, including those of earlier processes
  std::int64_t last = 0;  ///< number of steps at which the run ends
  double loss = 0;
  double seconds = 0;      ///< duration of this step and its extra steps, without creating batches
  bool skipped = false;    ///< loss scaling skipped the update
  const Tensors& outputs;  ///< of the step's graph: "learning_rate", "grad_norm", ...; the next step reuses them
  /// The latest losses: that of the step, TrainerOptions::reported_losses, and those of extra steps by the names of
  /// the steps, NaN before their first run. The next step reuses them.
  std::span<const NamedLoss> losses = {};
};

/// Progress of an evaluation.
struct EvaluationReport {
  std::int64_t done = 0, count = 0;  ///< completed batches, and all batches of the evaluation
  double seconds = 0;                ///< since the start of the first batch
};

}  // namespace lathe
