#pragma once

#include <string_view>

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "passes/program/program.h"

namespace lathe {

/// Parses the text of a program, as print_program writes it. print_program(parse_program(print_program(p))) equals
/// print_program(p). Statements may be in any order, but a launch must follow its region. `also`
/// is that of kernel::parse_kernel. Does not verify the program (passes/lowering/verify/verify_program.h).
///
/// Throws ParseError for syntax errors, unknown buffers and kernels, launches with more or fewer buffers or dims than
/// their kernel has, and two buffers of one name.
Program parse_program(std::string_view text, std::string_view file = "<text>",
                      const kernel::IntrinsicFamily& also = {});

}  // namespace lathe
