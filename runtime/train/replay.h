#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ir/tensor/graph.h"
#include "runtime/compile.h"
#include "runtime/train/batches.h"
#include "runtime/train/extra_step.h"

namespace lathe {

/// Steps of a run that diverged: numbers first .. last - 1, counted from 0, with the run's batches and sizes.
struct ReplayedSteps {
  const ir::Graph& graph;
  const CompileOptions& compile;  ///< of the run; `parameters` holds the values before the first step
  const Batches& batches;
  const DimsOfStep& dims;
  std::int64_t first = 0, last = 0;
  std::function<bool()> stop = {};  ///< called before every step; true ends the replay
};

/// Repeats the steps with CompileOptions::find_nan, which has the bits of the run. Returns the first step whose
/// results are not finite, with the op that makes them: "step 18 is not finite: ..." and the lines below. Returns ""
/// if there is none. Throws UserErrors of compile() and Executable::run().
std::string replay(const ReplayedSteps& steps);

/// Returns the text of a UserError [not_finite] of a step, counted from 0, without its label.
std::string fault_of_step(std::int64_t number, const UserError& error);

}  // namespace lathe
