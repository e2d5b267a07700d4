#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/options/lower_options.h"
#include "ir/support/object_store.h"
#include "ir/tensor/graph.h"
#include "runtime/run/program_runner.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

/// The machine for which matmuls are tuned.
struct TuneMachine {
  std::string name = {};                                            ///< identifies the machine: processor and threads
  std::function<Program(const LowerOptions&)> lower = {};           ///< lowers the graph
  std::function<std::string(const kernel::Kernel&)> code_key = {};  ///< key of a kernel's machine code
  ObjectStore* store = nullptr;                                     ///< stores choices; may be null
  /// Returns a runner that skips the launches that are set in `skipped` when a run starts.
  std::function<std::unique_ptr<ProgramRunner>(const Program&, const std::vector<bool>& skipped)> make_runner = {};
};

struct TuningResult {
  TuningChoices choices;
  TuneReport report;
};

/// Autotunes the matmuls of a lowered graph: finds the fastest candidate of each in runs of one size. Known choices
/// are read from the store. Others are measured in place, so that caches have the same content as in a real run. For
/// that, one program contains all candidates of every matmul, and each run executes one of them at each occurrence.
/// Candidates rotate between layers and runs; CandidateRace decides by the times of the launches. Arguments are
/// synthetic. Choices are stored under a key of the machine, the code of the matmul's default kernels, and the sizes;
/// an entry with an unknown candidate is measured again. Every choice gives bitwise equal results. Throws UserError
/// [tune_dims] for a dim without a size, and the errors of a run.
TuningResult tune_products(const ir::Graph& graph, const LowerOptions& options, const TuneOptions& tune,
                           const TuneMachine& machine);

}  // namespace lathe
