#pragma once

#include <vector>

#include "passes/remat/loop_pairs.h"

namespace lathe {

/// Returns a result of the saver that is saved until the reader runs and has the carry before each iteration; -1 if
/// there is none. `graph` contains both loops.
int stack_of_carry(const ir::Graph& graph, const LoopPair& pair, int carry);

/// Returns for each carry of the saver whether a checkpoint must be stored: no stack that the pair keeps has it.
std::vector<bool> stored_carries(const ir::Graph& graph, const LoopPair& pair);

}  // namespace lathe
