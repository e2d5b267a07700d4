#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "ir/tensor/op/op_set.h"

namespace lathe::tools {

/// Adds --ops FILE.so (repeatable).
CLI::Option* add_ops_option(CLI::App& command, std::vector<std::string>& libraries);

/// Loads libraries of custom ops (frontend/ops/op_library.h) and returns their ops. A library stays loaded until the
/// process ends. Throws UserError [ops_library] if a file cannot be loaded, has no LATHE_OP_LIBRARY, was built with
/// another version of Lathe, or adds an op that another library has.
ir::OpSet load_ops(const std::vector<std::string>& libraries);

}  // namespace lathe::tools
