#pragma once

#include <cstdint>

#include "ir/tensor/interpret/interpreter.h"
#include "runtime/compile.h"
#include "tools/options/arguments.h"

namespace lathe::tools {

struct ExecuteOptions {
  bool interpret = false;  ///< by the reference interpreter instead of compiled code
  int threads = 0;         ///< 0: one a CPU
  bool poison = false;     ///< see CompileOptions::poison
  LowerOptions lower = {};
  std::string target = "host";
  std::string memory_budget = {};  ///< the text of --memory-budget
  double tune = 0;                 ///< the seconds of --tune
};

/// Compiles for a target on this machine and, within a memory budget or with --tune, for these arguments, with the
/// cache on disk. What was tuned is told on standard error.
Executable compile_here(const ir::Graph& graph, const Arguments& arguments, const ExecuteOptions& options);

/// Gives a graph's executable the values of its parameters and states; what is left are the inputs of a run.
Tensors bind_states(Executable& executable, const ir::Graph& graph, const Arguments& arguments);

/// Of the sizes that are given those that no argument tells: what a run takes.
DimBindings dims_of_run(const ir::Graph& graph, const Arguments& arguments);

/// Runs a graph once: its outputs, and the states and parameters that it updates, by name.
Tensors execute(const ir::Graph& graph, const Arguments& arguments, const ExecuteOptions& options);

/// A graph that is compiled and can run.
struct Prepared {
  ir::Graph graph;
  Executable executable;
  Tensors inputs;
  DimBindings dims;  ///< that no argument tells
};
/// Compiles and binds a graph for measuring it: values that no file has are made up.
Prepared prepare(ir::Graph graph, ArgumentOptions arguments, const ExecuteOptions& options);

}  // namespace lathe::tools
