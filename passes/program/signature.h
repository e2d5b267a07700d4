#pragma once

#include <set>
#include <string>
#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// Returns a graph with only the arguments and run-time checks of `graph`, which suffices for binding its dims.
ir::Graph signature_of(const ir::Graph& graph);
/// Same for the arguments and checks of a program: inputs come first.
ir::Graph signature_of(const Program& program);

/// Returns the unknown dims of buffers, launches, loops, arguments, results and run-time checks.
std::set<std::string> unknown_dims(const Program& program);

/// Returns the dims of buffers, launches and loops that the arguments do not determine.
std::vector<std::string> dims_without_argument(const Program& program);

/// Gives the program's slots the types of the graph before ir::decompose_complex: a complex argument or output holds
/// the same bytes as the pairs of reals that the program works on.
void set_user_types(Program& program, const ir::Graph& given);

}  // namespace lathe
