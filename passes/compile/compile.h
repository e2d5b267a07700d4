#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/compile/stage.h"
#include "passes/lowering/lowered.h"
#include "passes/lowering/pool/kernel_pool.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

/// A graph on its way from the first rewrite to code. Which members are set depends on the stages that have run:
/// `graph` always, `regions` after "fuse", `program` after "kernels", `plan` after "memory-plan".
struct Compilation : Lowered {
  CompileRequest request;
  Machine machine;
  std::vector<bool> recomputed = {};  ///< after "rematerialize", by node: whether it is a copy for a late reader
  std::vector<RecomputedKind> recomputed_kinds = {};  ///< the same by kind, in the order of the decisions
  std::shared_ptr<KernelPool> pool = {};              ///< kernels that "rematerialize" has made
  std::optional<MemoryPlan> plan = {};
  std::vector<ir::PassRun> runs = {};  ///< the stages that ran, in order
  std::size_t next = 0;                ///< the first stage of stages_of(machine) that has not run
};

/// A compilation before its first stage. Throws UserError [memory_target] for a memory budget on a machine that does
/// not support one.
Compilation begin_compilation(ir::Graph graph, const Machine& machine, CompileRequest request = {});
/// The same for a graph of primitives, as ir::default_pipeline() returns it: the first stage is the target's first.
Compilation begin_at_target(ir::Graph primitives, const Machine& machine, const LowerOptions& options = {});

/// Runs the stages that are left, up to and including the one with this label (stage_labels()). The graph is verified
/// before the first pass and after each; `options` are those of ir::run_pipeline. Throws UserError [pass_name] for a
/// stage that the machine does not have or the request does not enable, and the errors of the passes.
void run_until(Compilation& now, std::string_view label, const ir::PipelineOptions& options = {});
/// The same up to the end of a part. Code stages do not run here: a Backend runs them.
void run_through(Compilation& now, Stage::Part part, const ir::PipelineOptions& options = {});

/// The text of the form that a stage has made: a graph as IR text, regions, kernels, exchanges, a plan, or code. The
/// stage has run, or is a code stage.
std::string print_stage(const Compilation& now, std::string_view label);

/// The graph after the stages of Part::whole_graph that the request enables.
ir::Graph requested_graph(ir::Graph graph, CompileRequest request);
/// All stages up to the program ("exchanges").
Compilation compile_graph(ir::Graph graph, const Machine& machine, CompileRequest request = {});
/// The same for a graph of primitives.
Compilation lower_graph(ir::Graph primitives, const Machine& machine, const LowerOptions& options = {});
/// Only its program.
Program lower(ir::Graph primitives, const Machine& machine, const LowerOptions& options = {});

/// Throws UserError [memory_target] for a machine that does not support memory budgets.
void require_budget_support(const Machine& machine);

/// The graph as some machine could compute it, with every attention fused: for ir::ExpectOptions::rewrite, which
/// measures what roundings do to that order of computation.
ir::Graph as_fused(const ir::Graph& graph);

}  // namespace lathe
