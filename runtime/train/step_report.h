#pragma once

#include <cstdint>

#include "ir/support/tensors/tensors.h"

namespace lathe {

/// A step that is done.
struct StepReport {
  std::int64_t step = 0;  ///< steps done so far, those of earlier processes included
  std::int64_t last = 0;  ///< the step that the run goes on to
  double loss = 0;
  double seconds = 0;      ///< of this step, without the making of its batch
  bool skipped = false;    ///< by loss scaling: nothing was updated
  const Tensors& outputs;  ///< of the step's graph: "learning_rate", "grad_norm" and so on; the next step fills them
};

/// Progress of an evaluation.
struct EvaluationReport {
  std::int64_t done = 0, count = 0;  ///< batches so far, and of the whole evaluation
  double seconds = 0;                ///< since its first batch started
};

}  // namespace lathe
