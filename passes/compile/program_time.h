#pragma once

#include "passes/program/program.h"
#include "passes/shard/predict/rank_scaling.h"

/// What a program is predicted to take, as compiled for its machine.
namespace lathe {

/// What a launch is predicted to take: its products by what multiplies them, or its memory, whichever takes longer,
/// and rates.launch_seconds. Nothing where it writes nothing.
shard::StepTime launch_time(const Program& program, const Launch& launch, const shard::StepRates& rates,
                            const DimBindings& dims);

/// Plays a run of a process's program: launches one after the other, and exchanges, with their folds, one after the
/// other beside them, each from its start to the launch that it must be over before. `dims` are those of a process
/// (shard::local_dims).
shard::StepTime program_time(const Program& program, const shard::StepRates& rates, const DimBindings& dims);

/// The time of a program, and the memory of its plan, for sizes to come.
shard::CompiledStep compiled_step(Program program, const shard::StepRates& rates);

}  // namespace lathe
