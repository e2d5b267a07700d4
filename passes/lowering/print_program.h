#pragma once

#include <string>

#include "passes/lowering/machine.h"

namespace lathe {

/// Prints the launches of a program, one comment line each, then its kernels as loop IR:
///   // launch 3: kernel 2 @softmax(%4, %9) for B, n_seq  from %9 softmax at mha.cpp:14
std::string print_kernels(const Program& program);

/// Prints all kernels in the form of a code stage.
std::string print_code(const Program& program, const CodeStage& stage);

}  // namespace lathe
