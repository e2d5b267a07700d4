#pragma once

#include <string>

#include "ir/support/tensors/tensors.h"
#include "tools/options/arguments.h"

namespace lathe::tools {

/// Returns whether the path names a file of kernel IR text: it ends with ".kernel".
bool is_kernel_file(const std::string& path);

/// Parses and verifies the one kernel of a file and interprets it. Returns the buffers that it may write, by name.
/// Buffers that are in no file of `arguments` have as many elements as the kernel accesses: random ones if it reads
/// them, NaN (integers: -1) otherwise. Throws ParseError, and UserError [kernel_file], [kernel_rule], [kernel_check],
/// [argument_missing], [argument_dtype], [dim_option].
Tensors run_kernel_file(const std::string& path, const ArgumentOptions& arguments);

}  // namespace lathe::tools
