#pragma once

#include "codegen/llvm/library/library_code.h"

namespace lathe::codegen {

/// The positions of the members of a call in the C interface, in words of 8 bytes: dims, inputs, a pointer to the
/// states, outputs, workspace, its bytes, workers or a stream. Members that a library does not have are absent.
struct CallLayout {
  CallLayout(const Library& library, const LibraryEntry& entry)
      : inputs(static_cast<int>(library.dims.size())),
        states(inputs + entry.inputs),
        outputs(states + (library.states.empty() ? 0 : 1)),
        workspace(outputs + entry.outputs) {}

  int dims = 0;
  int inputs, states, outputs, workspace;
  int workspace_bytes() const { return workspace + 1; }
  int workers() const { return workspace + 2; }  ///< of a library for CPUs
  int stream() const { return workspace + 2; }   ///< of a library for GPUs
};

/// The members of a library's own struct, in words of 4 bytes: `key` is library_key() once it is initialised.
enum class InstanceLayout : int { key, level };

/// The members that follow in libraries for GPUs, in words of 8 bytes: the driver's functions, device memory with
/// constants, and the handles of modules, then of functions, `kernels` each; then as many numbers, of the blocks of
/// each kernel that can be resident, if its launches are cooperative.
struct GpuInstanceLayout {
  static constexpr int driver = 1, constants = 2, modules = 3;
  static int functions(int kernels) { return modules + kernels; }
  static int resident_blocks(int kernels) { return modules + 2 * kernels; }
};

/// The members of lathe_workers, in words.
enum class WorkersLayout : int { parallel_for, context, count };

}  // namespace lathe::codegen
