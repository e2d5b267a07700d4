#pragma once

#include <string>
#include <vector>

#include "ir/options/init.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"
#include "runtime/emit_library.h"
#include "tests/gpu_library/mock_machine.h"
#include "tests/runtime/files/files_scratch.h"

/// Compares libraries for GPUs with code that is compiled in this process, on mock GPUs.
namespace lathe::test {

/// A call of a library: sizes of all late-bound dims, inputs, and the sizes that no argument determines.
struct LibraryCall {
  DimBindings dims;
  Tensors inputs;
  DimBindings passed = {};
};

/// A library of one graph, with the prefix `g`, and programs in C that use it.
class GpuLibrary {
 public:
  GpuLibrary(const ir::Graph& graph, const LibraryOptions& options);

  /// Returns options for a mock GPU.
  static LibraryOptions options(const DimBindings& most, const std::vector<Initializer>& initializers = {});

  /// Compiles runner.c for a call, and runs it with initial states. Returns outputs, then updated states, by name.
  /// The launches are in launches.log.
  Tensors run(const LibraryCall& call, const Tensors& states);
  /// Returns the states after init with a seed.
  Tensors initial_states(const LibraryCall& call, std::uint64_t seed);
  /// Compiles and runs a program of this folder's tests; returns its output.
  std::string run_program(const std::string& name);

  const EmittedLibrary& files() const { return files_; }
  const ScratchFolder& folder() const { return folder_; }

 private:
  void write_calls(const DimBindings& dims) const;
  void build(const std::string& source) const;
  /// Calls f(name, type) for each state of the library.
  template <class F>
  void for_states(F&& f) const;
  Tensors read_results(const DimBindings& dims, bool has_outputs) const;

  ir::Graph graph_;
  Tensors embedded_;
  EmittedLibrary files_;
  ScratchFolder folder_;
};

/// Runs each call with the library, and with compile() on the same mock GPU: launches, outputs and states are equal.
/// The first call must have the largest sizes: then the memory of all launches is compared, too. Returns the launches
/// of the library for the first call.
std::vector<MockLaunch> check_like_compiled(const ir::Graph& graph, const std::vector<Initializer>& initializers,
                                            const std::vector<LibraryCall>& calls, const LibraryOptions& options);

}  // namespace lathe::test
