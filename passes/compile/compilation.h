#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/options/pass_run.h"
#include "passes/compile/stage.h"
#include "passes/lowering/lowered.h"
#include "passes/lowering/pool/kernel_pool.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline/pipeline.h"

namespace lathe {

/// What "checkpoint-loops" decided about a loop whose outputs another loop reads.
struct LoopDecision {
  std::string what;        ///< "@step rnn.cpp:12"
  std::int64_t trips = 0;  ///< iterations at the sizes of the budget
  std::int64_t every = 0;  ///< iterations that are run again at a time; 0: the loop is left alone
  std::int64_t saved = 0,
               kept = 0;  ///< bytes of the values that are not saved; of checkpoints and one segment's values
  std::int64_t bytes_together = 0;  ///< memory of the whole program with this and all previous loops rewritten
  std::string left_alone;           ///< the reason if `every` is 0
};

/// A graph during compilation, from the first rewrite to code. The stages that have run determine which members are
/// set: `graph` always, `regions` after "fuse", `program` after "kernels", `plan` after "memory-plan".
struct Compilation : Lowered {
  CompileRequest request;
  Machine machine;
  std::vector<LoopDecision> loops = {};  ///< set by "checkpoint-loops", in the order of the decisions
  ir::NodeMap<bool> recomputed = {};     ///< set by "rematerialize": whether a node is a copy for a late reader
  std::vector<RecomputedKind> recomputed_kinds = {};  ///< the same by kind, in the order of the decisions
  std::shared_ptr<KernelPool> pool = {};              ///< kernels built by "checkpoint-loops" and "rematerialize"
  std::optional<MemoryPlan> plan = {};
  std::vector<PassRun> runs = {};  ///< the stages that ran, in order
  std::size_t next = 0;            ///< the first stage of stages_of(machine) that has not run
};

/// A compilation before its first stage. Throws UserError [memory_target] for a memory budget on a machine that does
/// not support one.
Compilation begin_compilation(ir::Graph graph, const Machine& machine, CompileRequest request = {});
/// The same for a graph of primitives, as ir::default_pipeline() returns it: the first stage is the target's first.
Compilation begin_at_target(ir::Graph primitives, const Machine& machine, const LowerOptions& options = {});

/// Runs the remaining stages, up to and including the one with this label (Stage::label). Verifies the graph before
/// the first pass and after each pass. `options` are those of ir::run_pipeline. Throws UserError [pass_name] for a
/// stage that the machine does not have or the request does not enable. Errors of the passes propagate.
void run_until(Compilation& now, std::string_view label, const PipelineOptions& options = {});
/// Same, up to the end of a part. Does not run code stages; a Backend runs them.
void run_through(Compilation& now, Stage::Part part, const PipelineOptions& options = {});

/// Returns the output of a stage as text: graph IR, regions, kernels, collectives, a memory plan, or code. The stage
/// must have run or be a code stage.
std::string print_stage(const Compilation& now, std::string_view label);

/// Returns the graph after the enabled stages of Part::whole_graph.
ir::Graph requested_graph(ir::Graph graph, CompileRequest request);
/// Runs all stages up to the program ("collectives").
Compilation compile_graph(ir::Graph graph, const Machine& machine, CompileRequest request = {});
/// Same, for a graph of primitives.
Compilation lower_graph(ir::Graph primitives, const Machine& machine, const LowerOptions& options = {});
/// Same, returning only the program.
Program lower(ir::Graph primitives, const Machine& machine, const LowerOptions& options = {});

/// Throws UserError [memory_target] for a machine that does not support memory budgets.
void require_budget_support(const Machine& machine);

/// Returns the graph with every attention fused, independent of the target. Used by ir::ExpectOptions::rewrite to
/// measure the rounding errors of that order of computation.
ir::Graph as_fused(const ir::Graph& graph);

}  // namespace lathe
