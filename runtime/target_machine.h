#pragma once

#include "passes/compile_pipeline.h"
#include "passes/lowering/vector_target.h"
#include "runtime/target.h"

namespace lathe {

/// What schedules know of a CPU. Xeons with AMX have an L3 behind a mesh; no feature tells it of older ones.
/// VDPBF16PS has twice the rate of an f32 fma on a Zen, half of it on an Intel CPU.
VectorTarget vector_target(const codegen::TargetCpu& cpu);

/// What compiles for a target. A GPU whose architecture is not told counts as the oldest that is compiled for.
Machine machine_of(const Target& target);

}  // namespace lathe
