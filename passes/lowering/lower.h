#pragma once

#include <map>

#include "passes/lowering/kernel_context.h"
#include "passes/lowering/lower_options.h"
#include "passes/lowering/lowered.h"
#include "passes/lowering/program/program.h"
#include "passes/lowering/region_kernels.h"
#include "passes/pipeline/pass.h"

namespace lathe {

/// What a machine makes of a region: kernels, and a launch of each.
using RegionSchedule = std::vector<KernelContext::Built> (*)(const LoweringContext&, const Region&);

/// A kind of machine: the passes of its own, and what it makes of regions and of a copy of one program buffer to
/// another.
struct Machine {
  MachineInfo info;
  std::map<RegionKind, RegionSchedule> schedules;  ///< one for each kind that its fusion makes
  RegionSchedule before = nullptr;                 ///< what goes before the kernels of any region
  KernelContext::Built (*copy)(const MachineInfo&, DType, int from, int to, const Dim& elements);
  /// Folds what came from so many processes.
  KernelContext::Built (*fold)(const MachineInfo&, DType, ScalarOp combine, int received, int folded,
                               const Dim& elements, std::int64_t ranks);
  std::int64_t folded_bytes = 0;       ///< of a process, at once: Exchange::Part::window; 0 for all
  FusionOptions fusion = {};           ///< regions that it can make something of
  RowChunks chunks = {};               ///< that suit it
  ir::Pipeline passes = {};            ///< before those of fusion
  void (*finish)(Program&) = nullptr;  ///< what is left to do for a program
  bool keeps_budgets = false;          ///< takes LowerOptions::memory
};

/// The passes from a graph of primitives (after ir::default_pipeline: no composites, no complex values) to one that
/// lower_prepared() takes: the machine's own, prepare_passes(), attention_passes(), and "require-attention" where
/// that is asked for, which throws UserError [attention_unfused] at the first attention that is not fused.
ir::Pipeline machine_passes(const Machine& machine, const LowerOptions& options = {});

/// Throws UserError [memory_target] for a machine that keeps no memory budget.
void require_budget_kept(const Machine& machine);

/// The stage "fuse": plan_fusion as the machine wants it. No kernel is made; a memory budget says nothing here.
Fused fuse_regions(ir::Graph prepared, const Machine& machine, const LowerOptions& options = {});
/// The stages after it: the machine's kernels for each region, and the times of exchanges (order_exchanges).
Lowered lower_regions(Fused fused, const Machine& machine, const LowerOptions& options = {});
/// Both; with a memory budget within lower_within, whose errors and [memory_target] it throws.
Lowered lower_prepared(ir::Graph prepared, const Machine& machine, const LowerOptions& options = {});

/// Turns a graph of primitives into kernels: machine_passes() and lower_prepared().
Lowered lower_graph(const ir::Graph& graph, const Machine& machine, const LowerOptions& options = {});
/// Of that the program.
Program lower(const ir::Graph& graph, const Machine& machine, const LowerOptions& options = {});

}  // namespace lathe
