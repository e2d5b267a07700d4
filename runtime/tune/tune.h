#pragma once

#include "codegen/llvm/jit.h"
#include "ir/tensor/graph.h"
#include "passes/lowering/lower_options.h"
#include "runtime/program_runner.h"
#include "runtime/tune/tune_options.h"

namespace lathe {

/// The machine that tiles are chosen for.
struct TuneMachine {
  std::string name = {};                                            ///< what a choice holds for: processor, threads
  std::function<Program(const LowerOptions&)> lower = {};           ///< of the graph
  std::function<std::string(const kernel::Kernel&)> code_key = {};  ///< of a kernel's machine code
  ObjectStore* store = nullptr;                                     ///< keeps choices; may be null
  /// A runner that leaves out the launches that are skipped when a run starts.
  std::function<std::unique_ptr<ProgramRunner>(const Program&, const std::vector<bool>& skipped)> make_runner = {};
};

struct TunedTiles {
  TileChoices choices;
  TuneReport report;
};

/// Which tile each product of a graph (as it is lowered) runs fastest with, in runs of one size. What the store knows
/// is taken from there. The rest is measured in place, so that caches hold what they hold in earnest: one program has
/// every product in all its tiles, each run of it takes one of them at each occurrence, and so the tiles of a kernel
/// take turns from layer to layer and from run to run; TileRace decides by the times of the launches. Arguments are
/// made up. Choices go to the store under a key of the machine, the code of the product's default kernels, and sizes;
/// an entry that names no tile of today is measured again. Results are the same bits with any choice. Throws
/// UserError [tune_dims] for a dim without a size, and those of a run.
TunedTiles tune_tiles(const ir::Graph& graph, const LowerOptions& options, const TuneOptions& tune,
                      const TuneMachine& machine);

}  // namespace lathe
