#pragma once

#include "models/import/pt2/program/exported_program.h"

namespace lathe::pt2 {

/// Returns the op that a node calls with a token, which orders effects; the target of the node for others.
std::string_view called_op(const NodePart& node);

/// Removes what has no effect on results: prints, the checks of linear algebra, whose results are NaN where they
/// would fail, and the tokens that order both. Tokens that other ops take stay.
void remove_effects(ExportedProgram& program);

}  // namespace lathe::pt2
