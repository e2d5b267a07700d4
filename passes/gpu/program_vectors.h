#pragma once

#include "ir/machine/vector_registers.h"
#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::gpu {

/// What a thread takes at once of an elementwise program: elements of 4 bytes that fill what it loads and stores at
/// once, or twice as many where everything that varies along its last dim has 2 bytes or fewer.
VectorRegisters program_vectors(const ElementwiseProgram& program, VectorRegisters vectors);

}  // namespace lathe::gpu
