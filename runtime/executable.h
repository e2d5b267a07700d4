#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/tensor_ref.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"
#include "passes/pipeline/pass_run.h"
#include "passes/shard/placement.h"
#include "runtime/launch_time.h"
#include "runtime/parameters/parameters.h"
#include "runtime/ranks/ranks.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

struct CompileOptions;  // runtime/compile.h
struct MemoryPlan;      // passes/memory/memory_plan.h
struct Program;         // passes/program/program.h

struct CompileSummary {
  int ops = 0;       ///< nodes of the graph as given
  int nodes = 0;     ///< of the graph that was lowered
  int kernels = 0;   ///< distinct
  int launches = 0;  ///< a run
  int compiled = 0, from_cache = 0;
  double pass_seconds = 0, lower_seconds = 0, codegen_seconds = 0;
  /// Every stage, as it ran: the passes, rematerialize with a memory budget, fuse, kernels, exchanges; memory-plan
  /// where every size is known or reserved, else the first run plans; code generation (asm, cuda).
  std::vector<ir::PassRun> passes;
  std::optional<TuneReport> tuned;  ///< where it was asked for
  /// Names of the parameters that a run updates, and of the others. In a training step the others are frozen, not
  /// chosen, or not used by the loss.
  std::vector<std::string> trained, not_trained;
  /// What the ranks decided for themselves, with its reason, a sentence a line: whether gathered parameters are kept
  /// for the backward pass, whether keys and values go around in a ring. Empty where there was nothing to decide.
  std::string division;
};

/// A compiled graph, which works on a store of parameters and states. Sizes are bound by the arguments of each run;
/// nothing is compiled again for other sizes. Runs of one executable take turns, and so do runs of several on one
/// store where some of them update it. Results are the same bits for any number of threads,
/// and in any floating-point environment of the caller (rounding, FTZ, DAZ, traps), which a run leaves as it was.
///
/// Its functions may be called from several threads. After it was moved from, an executable can be destroyed or
/// assigned to; any other use throws UserError [executable_moved].
class Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// The values that it works on: set them before the first run, read them after any.
  Parameters parameters() const;
  /// Works on another store from now on. UserError [parameters_conflict] where a value there has another type,
  /// [state_shared] where another executable updates the same states there, unless CompileOptions::share_states.
  void use(const Parameters& parameters);

  /// Runs the graph once: outputs by name. Updated states keep their new values for the next run. Throws the
  /// UserErrors of ir::bind_dims, [state_unset] for a parameter without a value, [out_of_memory], and those of
  /// run-time checks such as [index_range], which names the index, its position, the input and the user's line;
  /// states may be half updated after that one. With ranks, the arguments and results are this process's parts, all
  /// of them run at the same time, an error on one ends all [rank_failed], and one that does not answer is an error
  /// [rank_stalled]. Results are found by at(), which knows the names that there are
  /// [tensor_unknown].
  ///
  /// `dims` are sizes that no argument tells, such as how much of a cache is looked at: every other dim follows from
  /// the arguments.
  Tensors run(const Tensors& inputs, const DimBindings& dims = {});

  /// The same on the caller's memory: inputs are read where they lie, outputs are written to where they are to lie; a
  /// run computes all outputs, and keeps no reference to any of this memory. Arrays that are not dense and row-major
  /// are copied on the way. A run on a CPU allocates nothing where it has the sizes of the run before, or others that
  /// memory was planned for (CompileOptions::reserve, or larger ones before it) and whose unknowns are told one by
  /// one, as by [B, T + 1]; what is larger takes a larger arena. Further UserErrors:
  /// [output_unknown], [output_missing], [output_type], [output_overlap] for an output that shares memory with
  /// another argument or result, [argument_strides], [argument_alignment].
  void run(const InputRefs& inputs, const OutputRefs& outputs, const DimBindings& dims = {});
  /// The same into tensors that are filled again: those of the right dtype and shape are written to where they lie,
  /// and the others are made; after it there are the outputs alone. So a run that gets back the outputs of the run
  /// before, of the same sizes, allocates nothing. [output_overlap] where one shares memory with another argument.
  void run(const InputRefs& inputs, Tensors& outputs, const DimBindings& dims = {});

  /// The same, timed launch by launch.
  Tensors run_traced(const Tensors& inputs, std::vector<LaunchTime>& times, const DimBindings& dims = {});

  const CompileSummary& summary() const;
  const Program& program() const;
  /// The plan of the memory for these dims.
  MemoryPlan memory_plan(const DimBindings& dims) const;
  /// Where it was divided: how this process's arguments lie in those of the whole graph, by name.
  const std::map<std::string, shard::Placement>& placements() const;
  /// The processes that run it together; null where it is of one.
  const std::shared_ptr<Ranks>& ranks() const;
  /// Dims that these inputs (with the states as they are) bind.
  DimBindings bind(const Tensors& inputs, const DimBindings& dims = {}) const;

 private:
  friend Executable compile(const ir::Graph&, const CompileOptions&);
  struct Impl;
  Impl& impl() const;
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lathe
