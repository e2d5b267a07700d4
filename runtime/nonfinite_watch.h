#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "ir/tensor/graph.h"
#include "passes/check/find_fault.h"
#include "runtime/compile.h"
#include "runtime/files/safetensors/safetensors.h"

namespace lathe {

/// Finds the op that makes the first NaN or infinity of a run (CompileOptions::find_nan). A run overwrites its
/// states, so the watch copies the updated states before the run. If results are not finite, it restores the copies
/// and runs instrumented graphs on them.
///
/// With several ranks, every rank runs the same instrumented graphs, because they contain the collectives of the
/// graph. A value that a rank receives through a collective is no origin if another rank has one.
class NonfiniteWatch {
 public:
  /// `graph` is the one that the executable runs, before the passes.
  NonfiniteWatch(ir::Graph graph, const CompileOptions& options);

  /// Must be called before each run.
  void keep(const Parameters& parameters);
  /// Must be called after each run, with its outputs and a function that returns copies of its inputs; with several
  /// ranks, by all of them. Returns UserError [not_finite] if an output or a new state is not finite, on all ranks
  /// the same one: that of the lowest rank whose own op makes it. The states are then those before the run. Returns
  /// nothing for a step that loss scaling skipped: it leaves the states unchanged.
  std::optional<UserError> check(const Parameters& parameters, std::span<const TensorView> outputs,
                                 const std::function<Tensors(std::span<const std::string>)>& inputs,
                                 const DimBindings& dims) const;

 private:
  bool is_finite(const Parameters& parameters, std::span<const TensorView> outputs) const;
  UserError error_of_ranks(const ir::RunGraph& run) const;
  Tensors run(const ir::Graph& graph, const Parameters& values, const Tensors& inputs, const DimBindings& dims) const;

  ir::Graph graph_;
  CompileOptions options_;
  std::vector<std::string> inputs_;
  Tensors kept_;  ///< updated states, before the run
};

/// Returns views of results, for NonfiniteWatch. Elements with strides are copied to `copies`.
std::vector<TensorView> views_of(const Tensors& outputs, std::vector<HostTensor>& copies);
std::vector<TensorView> views_of(const OutputRefs& outputs, std::vector<HostTensor>& copies);

}  // namespace lathe
