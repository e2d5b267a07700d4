#pragma once

#include "passes/lowering/program.h"
#include "passes/shard/step_time.h"

namespace lathe::shard {

/// What a launch is predicted to take: its products by what multiplies them, or its memory, whichever takes longer,
/// and rates.launch_seconds. Nothing where it writes nothing.
StepTime launch_time(const Program& program, const Launch& launch, const StepRates& rates, const DimBindings& dims);

/// Plays a run of a process's program, as compiled for its machine: launches one after the other, and exchanges, with
/// their folds, one after the other beside them, each from its start to the launch that it must be over before.
/// `dims` are those of a process (local_dims).
StepTime program_time(const Program& program, const StepRates& rates, const DimBindings& dims);

}  // namespace lathe::shard
