#pragma once

#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/mesh/placement.h"
#include "ir/options/pass_run.h"
#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/tensor_ref.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"
#include "runtime/parameters/parameters.h"
#include "runtime/ranks/ranks.h"
#include "runtime/run/launch_time.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

struct CompileOptions;  // runtime/compile.h
struct MemoryPlan;      // passes/memory/memory_plan.h
struct Program;         // passes/program/program.h

/// Statistics, timings and decisions of compile().
struct CompileSummary {
  int ops = 0;       ///< nodes of the graph as given
  int nodes = 0;     ///< nodes of the graph after all passes
  int kernels = 0;   ///< distinct kernels
  int launches = 0;  ///< launches per run
  int compiled = 0, from_cache = 0;
  double pass_seconds = 0, lower_seconds = 0, codegen_seconds = 0;
  /// The stages that ran, in order: passes, rematerialize (with a memory budget), fuse, kernels, collectives,
  /// memory-plan (if every size is known or reserved; otherwise the first run plans), code generation (asm, cuda).
  std::vector<PassRun> passes;
  std::optional<TuneReport> tuned;  ///< with CompileOptions::tune
  /// Names of the parameters that a run updates, and of all others. In a training step the others are frozen, not
  /// selected, or not used by the loss.
  std::vector<std::string> trained, not_trained;
  /// Decisions of several processes, one sentence per line with its reason: whether gathered parameters are kept for
  /// the backward pass, and whether keys and values are passed around in a ring. Empty if there was nothing to
  /// decide.
  std::string division;
};

/// A compiled graph. It works on a store of parameters and states. Symbolic dims are bound by the arguments of each
/// run; other sizes need no recompilation. Runs of one executable are serialized, and so are runs of several
/// executables on one store if one of them updates it. Results are bit-identical for any number of threads, and in
/// any floating-point environment of the caller (rounding, FTZ, DAZ, traps), which a run leaves unchanged.
///
/// All functions may be called from several threads. A moved-from executable can only be destroyed or assigned to;
/// any other use throws UserError [executable_moved].
class Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Returns the store it works on. Set values before the first run; read them after any run.
  Parameters parameters() const;
  /// Switches to another store. Throws UserError [parameters_conflict] if a value there has another type,
  /// [state_shared] if another executable updates the same states there, unless CompileOptions::share_states is set.
  void use(const Parameters& parameters);

  /// Runs the graph once and returns its outputs by name; find them with at(), which rejects unknown names
  /// [tensor_unknown]. Updated states keep their new values for the next run. `dims` are sizes that no argument
  /// determines, such as the used length of a cache.
  ///
  /// Every input of the graph must be given, also one that no output depends on: an input that is missing or unknown
  /// is an error that names it. Parameters and states that no output depends on need no value.
  ///
  /// Throws the UserErrors of ir::bind_dims, [state_unset] for a parameter without a value, [out_of_memory], and
  /// those of run-time checks such as [index_range], which names the index, its position, the input and the user's
  /// line. After a run-time check fails, states may be partly updated. With ranks, arguments and results are this
  /// process's shards, and all ranks must call run() together. An error on one rank ends all [rank_failed]; a rank
  /// that does not answer is an error [rank_stalled].
  Tensors run(const Tensors& inputs, const DimBindings& dims = {});

  /// Runs the graph on the caller's memory: reads inputs and writes outputs in place, and keeps no reference to them.
  /// Arrays that are not dense and row-major are copied. A run on a CPU allocates nothing if its sizes equal those of
  /// the run before, or fit memory that was planned before (CompileOptions::reserve, or a larger run), and each
  /// symbolic dim is given by an argument dim such as [B, T + 1]. Otherwise a larger arena is allocated. All outputs
  /// are computed. Also throws UserError [output_unknown], [output_missing], [output_type], [output_overlap] for an
  /// output that shares memory with another argument or result, [argument_strides], [argument_alignment].
  void run(const InputRefs& inputs, const OutputRefs& outputs, const DimBindings& dims = {});
  /// Runs the graph into tensors that are reused: outputs with the right dtype and shape are written in place, others
  /// are created, and tensors of other names are removed. Passing the outputs of the run before, at the same sizes,
  /// allocates nothing. Throws [output_overlap] if one shares memory with another argument.
  void run(const InputRefs& inputs, Tensors& outputs, const DimBindings& dims = {});
  /// The same with inputs in Tensors. Templates, so that {{"x", tensor}} is InputRefs, which copies nothing.
  template <std::same_as<Tensors> Inputs>
  void run(const Inputs& inputs, Tensors& outputs, const DimBindings& dims = {}) {
    run_into(inputs, outputs, dims);
  }
  template <std::same_as<Tensors> Inputs>
  void run(const Inputs& inputs, const OutputRefs& outputs, const DimBindings& dims = {}) {
    run_into(inputs, outputs, dims);
  }

  /// Runs the graph and measures the time of each launch.
  Tensors run_traced(const Tensors& inputs, std::vector<LaunchTime>& times, const DimBindings& dims = {});

  const CompileSummary& summary() const;
  /// For a sharded graph: the position of this process's arguments in those of the whole graph, by name.
  const std::map<std::string, shard::Placement>& placements() const;
  /// Returns the processes that run it together; null for one process.
  const std::shared_ptr<Ranks>& ranks() const;
  /// Returns the dims that these inputs bind, together with the current states.
  DimBindings bind(const Tensors& inputs, const DimBindings& dims = {}) const;

 private:
  friend Executable compile(const ir::Graph&, const CompileOptions&);
  // runtime/executable_program.h, which is not installed
  friend const Program& program_of(const Executable& executable);
  friend MemoryPlan memory_plan_of(const Executable& executable, const DimBindings& dims);
  struct Impl;
  void run_into(const Tensors& inputs, Tensors& outputs, const DimBindings& dims);
  void run_into(const Tensors& inputs, const OutputRefs& outputs, const DimBindings& dims);
  Impl& impl() const;
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lathe
