#pragma once

#include "ir/tensor/interpret/interpreter.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

/// Runs the graph of every process of the mesh in this one, by the reference interpreter, each node on all processes
/// before the next. Arguments are those of the whole graph, as are the results: outputs by name, and every updated
/// state or parameter. Each process is given its parts; parts are joined, and values that all processes hold are
/// required to be the same on all, bit for bit [mesh_disagree]. A sum over processes goes in the order of their
/// positions. Throws UserError [mesh_divide] for an argument whose sizes do not divide, and those of interpret().
Tensors simulate(const Sharded& sharded, const Tensors& arguments, const ir::InterpretOptions& options = {});

}  // namespace lathe::shard
