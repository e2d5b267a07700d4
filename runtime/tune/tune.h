#pragma once

#include "codegen/llvm/jit.h"
#include "ir/tensor/graph.h"
#include "passes/lowering/lower_options.h"
#include "runtime/program_runner.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

/// The machine that products are tuned for.
struct TuneMachine {
  std::string name = {};                                            ///< what a choice holds for: processor, threads
  std::function<Program(const LowerOptions&)> lower = {};           ///< of the graph
  std::function<std::string(const kernel::Kernel&)> code_key = {};  ///< of a kernel's machine code
  ObjectStore* store = nullptr;                                     ///< keeps choices; may be null
  /// A runner that leaves out the launches that are skipped when a run starts.
  std::function<std::unique_ptr<ProgramRunner>(const Program&, const std::vector<bool>& skipped)> make_runner = {};
};

struct TuningResult {
  TuningChoices choices;
  TuneReport report;
};

/// Autotunes the products of a graph (as it is lowered): finds the fastest candidate of each in runs of one size.
/// What the store knows is taken from there. The rest is measured in place, so that caches hold what they hold in a
/// real run: one program has every product by all its candidates, each run of it takes one of them at each
/// occurrence, and so the candidates of a product take turns from layer to layer and from run to run; CandidateRace
/// decides by the times of the launches. Arguments are made up. Choices go to the store under a key of the machine,
/// the code of the product's default kernels, and sizes; an entry that names no candidate is measured again. Results
/// are the same bits with any choice. Throws UserError [tune_dims] for a dim without a size, and those of a run.
TuningResult tune_products(const ir::Graph& graph, const LowerOptions& options, const TuneOptions& tune,
                           const TuneMachine& machine);

}  // namespace lathe
