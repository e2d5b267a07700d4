#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/object_store.h"
#include "ir/support/tensors/host_tensor.h"
#include "ir/support/tensors/tensor_ref.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"
#include "passes/lowering/lower_options.h"
#include "passes/pipeline/pipeline_options.h"
#include "passes/shard/placement.h"
#include "passes/shard/shard_options.h"
#include "runtime/launch_time.h"
#include "runtime/parameters/parameters.h"
#include "runtime/ranks/ranks.h"
#include "runtime/target.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

struct MemoryPlan;  // passes/memory/memory_plan.h
struct Program;     // passes/program/program.h
namespace cuda {
struct Platform;  // runtime/cuda/platform.h
}

using shard::Mesh;
using shard::Split;

/// What a graph is compiled for: to train, as it is written, or to be evaluated, without dropout
/// (passes/transforms/evaluation.h).
enum class Mode : std::uint8_t { training, evaluation };

struct CompileOptions {
  Target target = Target::host();
  Mode mode = Mode::training;
  /// The store of parameters and states to work on; nothing: a new one of its own.
  std::optional<Parameters> parameters = {};
  /// Lets it update states that another executable on the store updates too, such as a cache that a prompt fills and
  /// each token extends. Otherwise that is an error [state_shared]: two optimizers would count each other's steps.
  bool share_states = false;
  /// Sizes that unknown dims are expected to reach: memory is planned for these at once, so that runs of any smaller
  /// sizes plan and allocate nothing.
  DimBindings reserve = {};
  /// Sizes that it is compiled for alone: these unknown dims become numbers (passes/transforms/known_sizes.h), which
  /// passes that choose by size then see. Dims that the graph lacks count for nothing.
  DimBindings sizes = {};
  int threads = 0;  ///< that run a CPU's kernels, and that compile; 0: one a CPU [thread_count] [thread_start]
  ObjectStore* cache = nullptr;       ///< keeps compiled code between processes; may be null, must outlive the call
  ir::PipelineOptions pipeline = {};  ///< shows the graph after each pass, leaves passes out
  LowerOptions lower = {};
  /// Outputs and temporaries of a CPU hold NaNs, negative integers and true until a kernel writes them, so that what
  /// none writes shows in the results. For tests and for comparing with the interpreter: it costs a pass over memory.
  bool poison = false;
  /// The processes that run the graph together, on CPUs or with a GPU each; null: it is of one process, unless `mesh`
  /// is given. Each of them compiles it.
  std::shared_ptr<Ranks> ranks = nullptr;
  /// Short for `ranks` of the processes that mpirun has started, in this mesh (mpi_processes(), with its defaults).
  /// MPI begins once in a process [mpi_once], so what is compiled next takes Executable::ranks() of the first.
  /// Without axes: not given. With `ranks` it is their mesh, or an error [compile_options].
  Mesh mesh = {};
  /// The dims of the graph that are split over axes of their mesh: passes/shard/shard.h. A graph that was divided
  /// before takes neither these nor `parts` [divided_already].
  std::vector<Split> split = {};
  /// Short for parts.states, which is the same or empty [compile_options].
  std::string shard_states = {};
  shard::ShardOptions parts = {};        ///< of processes: states and parameters that lie in parts between steps
  std::optional<TuneOptions> tune = {};  ///< of CPU kernels: runtime/tune/tune.h
  /// What Target::cuda() compiles and runs by; null: this machine's own driver and NVRTC, with `ranks` the GPU of
  /// this one and NCCL.
  std::shared_ptr<const cuda::Platform> gpu = nullptr;
};

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

/// Passes, lowering and code generation. Throws UserErrors of the passes, [parameters_conflict], [state_shared]; for
/// Target::cuda() also [driver_missing], [nvrtc_missing], [no_device], and [arch_mismatch] where the GPU is not of
/// the architecture asked for; with `tune` [tune_dims]. With `mesh` those of Ranks and mpi_processes(),
/// [mesh_processes] where another number of processes runs. With `ranks` and `split` those of shard::shard, and
/// [ranks_differ] on all of them where one has another graph, CPU, GPU or Lathe, [rank_devices] where there are fewer
/// GPUs than ranks, [nccl_missing], [nccl_failed]; without ranks [one_process] for a graph that is one of several.
Executable compile(const ir::Graph& graph, const CompileOptions& options = {});

}  // namespace lathe
