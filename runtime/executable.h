#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/jit.h"
#include "ir/support/host_tensor.h"
#include "ir/tensor/interpreter.h"
#include "passes/lowering/options.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline.h"
#include "runtime/cuda/platform.h"
#include "runtime/launch_time.h"
#include "runtime/target.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

struct CompileOptions {
  Target target = Target::host();
  int threads = 0;  ///< that run a CPU's kernels; 0: one a CPU
  codegen::ObjectStore* cache =
      nullptr;  ///< keeps compiled code between processes; may be null, must outlive the call
  ir::PipelineOptions pipeline = {};
  LowerOptions lower = {};
  std::optional<TuneOptions> tune = {};  ///< of CPU kernels: runtime/tune/tune.h
  /// What Target::cuda() compiles and runs by; null: this machine's own driver and NVRTC.
  std::shared_ptr<const cuda::Platform> gpu = nullptr;
  /// For tests, on a CPU: outputs and temporaries hold NaNs and -1 until they are written.
  bool poison = false;
};

struct CompileSummary {
  int ops = 0;       ///< nodes of the graph as given
  int nodes = 0;     ///< of the graph that was lowered
  int kernels = 0;   ///< distinct
  int launches = 0;  ///< a run
  int compiled = 0, from_cache = 0;
  double pass_seconds = 0, lower_seconds = 0, codegen_seconds = 0;
  std::vector<ir::PassRun> passes;
  std::optional<TuneReport> tuned;  ///< where it was asked for
};

/// A compiled graph with its parameters and states. Sizes are bound by the arguments of each run; nothing is compiled
/// again for other sizes. Runs of one executable take turns. Results are the same bits for any number of threads.
class Executable {
 public:
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

  /// Sets a parameter or state. Throws UserError [argument_unknown], [argument_dtype], [argument_shape].
  void set_state(std::string_view name, const HostTensor& value);
  void set_states(const ir::Tensors& values);
  /// A parameter or state as it is now [argument_unknown], [state_unset].
  const HostTensor& state(std::string_view name) const;
  const ir::Tensors& states() const;

  /// Runs the graph once: outputs by name. Updated states keep their new values for the next run. Throws the
  /// UserErrors of ir::bind_dims, [state_unset] for a parameter without a value, [out_of_memory], and those of
  /// run-time checks such as an index out of range, which names the user's line; states may be half updated after
  /// that one.
  ir::Tensors run(const ir::Tensors& inputs);

  /// The same, timed launch by launch.
  ir::Tensors run_traced(const ir::Tensors& inputs, std::vector<LaunchTime>& times);

  const CompileSummary& summary() const;
  const Program& program() const;
  /// The plan of the memory for these dims.
  MemoryPlan memory_plan(const DimBindings& dims) const;
  /// Dims that these inputs (with the states as they are) bind.
  DimBindings bind(const ir::Tensors& inputs) const;

 private:
  friend Executable compile(const ir::Graph&, const CompileOptions&);
  struct Impl;
  explicit Executable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Passes, lowering and code generation. Throws UserErrors of the passes; for Target::cuda() also [driver_missing],
/// [nvrtc_missing], [no_device], and [arch_mismatch] where the GPU is not of the architecture asked for; with `tune`
/// [tune_dims].
Executable compile(const ir::Graph& graph, const CompileOptions& options = {});

}  // namespace lathe
