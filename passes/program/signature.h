#pragma once

#include "passes/program/program.h"

namespace lathe {

/// Returns a graph with only the arguments and run-time checks of `graph`, which suffices for binding its dims.
ir::Graph signature_of(const ir::Graph& graph);

/// Gives the program's slots the types of the graph before ir::decompose_complex: a complex argument or output holds
/// the same bytes as the pairs of reals that the program works on.
void set_user_types(Program& program, const ir::Graph& given);

}  // namespace lathe
