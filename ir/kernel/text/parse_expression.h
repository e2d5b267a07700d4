#pragma once

#include "ir/kernel/text/kernel_reader.h"

namespace lathe::kernel {

/// Parses an operation with its operands, its mask and its alignment: "load x[i0 by n] mask %3". Its type, which
/// follows if it has a value, is left open.
Instruction parse_expression(KernelReader& reader);

/// Parses " mask %3 align 16", or nothing.
void parse_suffix(KernelReader& reader, ValueId& mask, int& alignment);

}  // namespace lathe::kernel
