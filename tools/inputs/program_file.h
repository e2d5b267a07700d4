#pragma once

#include <string>

#include "ir/support/tensors/tensors.h"
#include "tools/options/arguments.h"

namespace lathe::tools {

/// Returns whether the path names a file of program text: it ends with ".program".
bool is_program_file(const std::string& path);

/// Parses and verifies the program of a file, compiles its kernels for `target` and runs it once. Returns outputs and
/// updated states by name. Throws ParseError, UserError [program_rule], [program_target], and those of load_arguments
/// and run_program.
Tensors run_program_file(const std::string& path, const ArgumentOptions& arguments, const std::string& target,
                         int threads);

}  // namespace lathe::tools
