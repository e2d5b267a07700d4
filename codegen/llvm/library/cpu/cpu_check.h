#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/llvm/target_cpu.h"

/// Which CPUs can run a library's code.
namespace lathe::codegen {

/// A result of CPUID, and the bits in it that must be set.
struct CpuidBits {
  std::uint32_t leaf, subleaf;
  int result;  ///< 0 to 3: eax, ebx, ecx, edx
  std::uint32_t mask;
};

/// Returns the same target without the instructions that needs_of() cannot test for.
TargetCpu testable(const TargetCpu& target);
/// Returns the bits of CPUID that code for the target needs, by leaf, subleaf and result.
std::vector<CpuidBits> needs_of(const TargetCpu& target);
/// Returns the bits of the extended control register XCR0 that the system must set: the registers that it saves.
std::uint32_t saved_registers_of(const TargetCpu& target);

}  // namespace lathe::codegen
