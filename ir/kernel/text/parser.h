#pragma once

#include <string_view>
#include <vector>

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/kernel.h"
#include "ir/support/syntax/token_stream.h"

namespace lathe::kernel {

/// Parses the text of one kernel (docs/kernel-ir.md), as `print` writes it. print(parse_kernel(print(k))) equals
/// print(k). `also` adds intrinsics and regions to intrinsic_families(). Does not verify the kernel. Throws
/// ParseError for syntax errors, unknown names and operands that do not match an intrinsic's record.
Kernel parse_kernel(std::string_view text, std::string_view file = "<text>", const IntrinsicFamily& also = {});

/// Parses a kernel up to its '}', which may be followed by more text.
Kernel parse_kernel(syntax::TokenStream& in, const IntrinsicFamily& also = {});

/// Parses any number of kernels.
std::vector<Kernel> parse_kernels(std::string_view text, std::string_view file = "<text>",
                                  const IntrinsicFamily& also = {});

}  // namespace lathe::kernel
