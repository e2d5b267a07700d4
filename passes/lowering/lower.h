#pragma once

#include "passes/lowering/kernel_context.h"
#include "passes/lowering/lowered.h"
#include "passes/lowering/options.h"
#include "passes/lowering/program.h"
#include "passes/lowering/region_kernels.h"
#include "passes/pass.h"

namespace lathe {

/// A kind of machine: the passes of its own, and what it makes of regions and of a copy of one program buffer to
/// another.
struct Machine {
  VectorTarget vectors;
  std::vector<KernelContext::Built> (*region)(const LoweringContext&, const Region&);
  KernelContext::Built (*copy)(const VectorTarget&, DType, int from, int to, const Dim& elements);
  FusionOptions fusion = {};           ///< regions that it can make something of
  RowChunks chunks = {};               ///< that suit it
  ir::Pipeline passes = {};            ///< before those of fusion
  void (*finish)(Program&) = nullptr;  ///< what is left to do for a program
};

/// The passes from a graph of primitives (after ir::default_pipeline: no composites, no complex values) to one that
/// lower_prepared() takes: the machine's own, prepare_passes(), attention_passes(), and "require-attention" where
/// that is asked for, which throws UserError [attention_unfused] at the first attention that is not fused.
ir::Pipeline machine_passes(const Machine& machine, const LowerOptions& options = {});

/// plan_fusion, and the machine's kernels for each region; with a memory budget lower_within, whose errors it throws.
Lowered lower_prepared(ir::Graph prepared, const Machine& machine, const LowerOptions& options = {});

/// Turns a graph of primitives into kernels: machine_passes() and lower_prepared().
Program lower(const ir::Graph& graph, const Machine& machine, const LowerOptions& options = {});

}  // namespace lathe
