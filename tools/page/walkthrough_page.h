#pragma once

#include <string>

#include "ir/tensor/interpret/interpreter.h"

namespace lathe::tools {

/// Returns a self-contained page that steps through a graph: for each value its op, the reason for its shape, and the
/// numbers of its operands and its result, computed by the interpreter. Buttons and arrow keys step forward and back;
/// pointing at a number marks the numbers that it is made of. Values of more than 4096 elements are shown without
/// numbers. Throws the UserErrors of interpret().
std::string walkthrough_page(const ir::Graph& graph, const Tensors& arguments, const ir::InterpretOptions& options);

}  // namespace lathe::tools
