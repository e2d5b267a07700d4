#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/mesh/shard_options.h"
#include "ir/options/lower_options.h"
#include "ir/options/pipeline_options.h"
#include "ir/support/object_store.h"
#include "ir/tensor/graph.h"
#include "runtime/executable.h"
#include "runtime/parameters/parameters.h"
#include "runtime/ranks/ranks.h"
#include "runtime/target.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

using shard::Mesh;
using shard::Split;

/// Training compiles a graph as written. Evaluation removes dropout (passes/transforms/evaluation.h).
enum class Mode : std::uint8_t { training, evaluation };

struct CompileOptions {
  Target target = Target::host();
  Mode mode = Mode::training;
  /// Store of parameters and states. Nothing: the executable creates its own.
  std::optional<Parameters> parameters = {};
  /// Allows the executable to update states that another executable on the store updates too, such as a cache that a
  /// prompt fills and each token extends. Otherwise that is an error [state_shared], because two optimizers would
  /// count each other's steps.
  bool share_states = false;
  /// Expected maxima of symbolic dims. Memory is planned for them at once, so that runs of any smaller sizes allocate
  /// nothing. GPUs ignore it: they plan each combination of sizes at its first run.
  DimBindings reserve = {};
  /// Symbolic dims that become numbers (passes/transforms/sizes/known_sizes.h), so that passes can choose by size.
  /// The executable then runs at these sizes only. Dims that the graph does not have are ignored.
  DimBindings sizes = {};
  /// Threads that compile, and that run kernels on a CPU; 0: one per CPU. Throws [thread_count], [thread_start].
  int threads = 0;
  /// Whether the executable has threads of its own. By default, executables with the same number of threads share
  /// them: runs in turn use one set, and runs at the same time have one each.
  bool own_threads = false;
  /// Store of compiled code. None by default: EVERY process compiles all kernels again, for seconds or minutes with
  /// large models. Give a folder to compile once: DiskCache cache("folder"), {.cache = &cache}. The store is used
  /// only during compile() and must outlive that call. The command has a cache by default.
  ObjectStore* cache = nullptr;
  PipelineOptions pipeline = {};  ///< shows the graph after each pass, disables passes
  LowerOptions lower = {};
  /// Fills outputs and temporaries with NaN (integers: -1, booleans: true) before each run on a CPU, so that reads of
  /// unwritten memory show. For tests: it costs a pass over memory.
  bool poison = false;
  /// Checks each run's outputs and new states. If one is infinite or NaN, throws UserError [not_finite], which names
  /// the first op whose result is not finite although its operands are, its source line and its operands' ranges; the
  /// states are then those before the run. Costs a copy of the updated states per run, and a pass over them and the
  /// outputs. With several processes, all throw the error of the lowest rank whose own op makes the value, and each
  /// run exchanges a message.
  bool find_nan = false;
  /// The processes that run the graph together, on CPUs or with one GPU each; null: one process, unless `mesh` is
  /// given. Every one of them must call compile().
  std::shared_ptr<Ranks> ranks = nullptr;
  /// Shorthand for `ranks`: the processes that mpirun started, in this mesh (mpi_processes() with its defaults). MPI
  /// can be initialized once per process [mpi_once], so later compilations pass Executable::ranks() of the first one.
  /// No axes: not given. If `ranks` is given too, its mesh must be the same [compile_options].
  Mesh mesh = {};
  /// Dims of the graph that are split over axes of the mesh: passes/shard/shard.h. A graph that is sharded already
  /// accepts neither these nor `parts` [divided_already].
  std::vector<Split> split = {};
  /// Shorthand for parts.states; if both are given they must be equal [compile_options].
  std::string shard_states = {};
  shard::ShardOptions parts = {};        ///< states and parameters that are sharded between steps
  std::optional<TuneOptions> tune = {};  ///< autotunes matmuls: runtime/tune/tune.h
};

/// Compiles a graph: runs all passes, lowers it and generates code. Throws UserErrors of the passes,
/// [parameters_conflict], [state_shared], with `tune` [tune_dims].
/// For Target::cuda() also [driver_missing], [nvrtc_missing], [no_device], and [arch_mismatch] if the GPU does not
/// have the requested architecture.
/// With `mesh` those of Ranks and mpi_processes(), [mesh_processes] if the number of processes differs. With `ranks`
/// and `split` those of shard::shard, and on all ranks [ranks_differ] if one has another graph, CPU, GPU or version
/// of Lathe, [rank_devices] if there are fewer GPUs than ranks, [nccl_missing], [nccl_failed]. Without ranks
/// [one_process] for a graph with collectives.
Executable compile(const ir::Graph& graph, const CompileOptions& options = {});

}  // namespace lathe
