#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/object_store.h"
#include "ir/tensor/graph.h"
#include "passes/lowering/lower_options.h"
#include "passes/pipeline/pipeline_options.h"
#include "passes/shard/shard_options.h"
#include "runtime/executable.h"
#include "runtime/parameters/parameters.h"
#include "runtime/ranks/ranks.h"
#include "runtime/target.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

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
};

/// Passes, lowering and code generation. Throws UserErrors of the passes, [parameters_conflict], [state_shared]; for
/// Target::cuda() also [driver_missing], [nvrtc_missing], [no_device], and [arch_mismatch] where the GPU is not of
/// the architecture asked for; with `tune` [tune_dims]. With `mesh` those of Ranks and mpi_processes(),
/// [mesh_processes] where another number of processes runs. With `ranks` and `split` those of shard::shard, and
/// [ranks_differ] on all of them where one has another graph, CPU, GPU or Lathe, [rank_devices] where there are fewer
/// GPUs than ranks, [nccl_missing], [nccl_failed]; without ranks [one_process] for a graph that is one of several.
Executable compile(const ir::Graph& graph, const CompileOptions& options = {});

}  // namespace lathe
