#pragma once

#include "ir/hardware/vector_registers.h"
#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe::gpu {

/// Returns the vectors that a thread of an elementwise program processes: elements of 4 bytes that fill one load or
/// store, or twice as many if everything that varies along the last dim has 2 bytes or fewer.
VectorRegisters program_vectors(const ElementwiseProgram& program, VectorRegisters vectors);

}  // namespace lathe::gpu
