#pragma once

#include <cstdint>

#include "ir/tensor/interpret/interpreter.h"
#include "runtime/compile.h"
#include "tools/inputs/files.h"
#include "tools/options/arguments.h"

namespace lathe::tools {

struct ExecuteOptions {
  bool interpret = false;  ///< use the reference interpreter instead of compiled code
  int threads = 0;         ///< 0: one per CPU
  bool poison = false;     ///< see CompileOptions::poison
  LowerOptions lower = {};
  std::string target = "host";
  std::string memory_budget = {};  ///< value of --memory-budget
  double tune = 0;                 ///< seconds of --tune
};

/// Compiles for a target on this machine, using the disk cache. With a memory budget or --tune, compiles for these
/// arguments. Prints tuning results to standard error.
Executable compile_here(const ir::Graph& graph, const Arguments& arguments, const ExecuteOptions& options);

/// Sets the parameters and states of a graph's executable. Returns the remaining arguments, the inputs of a run.
Tensors bind_states(Executable& executable, const ir::Graph& graph, const Arguments& arguments);

/// Returns the given dims that do not follow from any argument, for Executable::run.
DimBindings dims_of_run(const ir::Graph& graph, const Arguments& arguments);

/// Runs a graph once. Returns its outputs and the updated states and parameters, by name.
Tensors execute(const ir::Graph& graph, const Arguments& arguments, const ExecuteOptions& options);

/// A compiled graph with its inputs.
struct Prepared {
  ir::Graph graph;
  Executable executable;
  Tensors inputs;
  DimBindings dims;  ///< dims that do not follow from any argument
};
/// Compiles and binds a graph for measurements. Values that are not in files are random.
Prepared prepare(LoadedModel model, ArgumentOptions arguments, const ExecuteOptions& options);

}  // namespace lathe::tools
