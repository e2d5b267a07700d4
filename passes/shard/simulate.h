#pragma once

#include "ir/tensor/interpret/interpreter.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

/// Runs the graph of every process of the mesh in this process, with the reference interpreter, each node on all
/// processes before the next. Arguments and results are those of the global graph: outputs by name, and every updated
/// state or parameter. Each process gets its shards. Shards of results are joined, and values that all processes hold
/// must be bit-identical [mesh_disagree]. A sum over processes is computed in the order of their positions. Throws
/// UserError [mesh_divide] for an argument whose sizes do not divide, and the errors of interpret().
Tensors simulate(const Sharded& sharded, const Tensors& arguments, const ir::InterpretOptions& options = {});

}  // namespace lathe::shard
