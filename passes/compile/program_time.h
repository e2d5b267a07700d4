#pragma once

#include "passes/program/program.h"
#include "passes/shard/predict/rank_scaling.h"

/// Predicts the run time of a compiled program.
namespace lathe {

/// Returns the predicted time of a launch: compute time of its matmuls or memory time, whichever is longer, plus
/// rates.launch_seconds. Returns zero if the launch writes nothing.
shard::StepTime launch_time(const Program& program, const Launch& launch, const shard::StepRates& rates,
                            const DimBindings& dims);

/// Simulates a run of a process's program. Launches run sequentially, those in loops as often as the loops do.
/// Collectives with their reductions also run sequentially, overlapping with launches between `start` and `done`.
/// `dims` are those of a process (shard::local_dims).
shard::StepTime program_time(const Program& program, const shard::StepRates& rates, const DimBindings& dims);

/// Returns the predicted time and memory of a program as functions of the dims.
shard::CompiledStep compiled_step(Program program, const shard::StepRates& rates);

}  // namespace lathe
