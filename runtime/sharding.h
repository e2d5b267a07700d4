#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compile.h"

/// How a training step is distributed over the processes of CompileOptions::ranks.
namespace lathe {

/// Sets the splits that the names of the mesh axes suggest: B for "data" and "fsdp"; h, d_ff and vocab for "model",
/// each if `forward` can be split by it (passes/shard/plan/default_splits.h). Requires options.ranks and no splits.
/// Returns a line for each dim that is left out, with the reason.
std::vector<std::string> set_default_splits(CompileOptions& options, const ir::Graph& forward);

/// Returns the mesh, the splits and the shards as options of the command: "--mesh data=4 --split B:data". Requires
/// options.ranks.
std::string sharding_text(const CompileOptions& options);

/// Adds the sizes of split dims on one process: B=8 becomes B=8 and B@data=2.
DimBindings sizes_on_process(DimBindings sizes, const std::vector<Split>& splits, const Mesh& mesh);

/// Returns the number of CPUs per process of this host. Must be called by all ranks.
int threads_per_process(Ranks& ranks);

}  // namespace lathe
