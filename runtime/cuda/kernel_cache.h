#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/index/index_width.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/resources.h"
#include "ir/kernel/kernel.h"
#include "ir/support/object_store.h"

namespace lathe::cuda {

struct CompiledKernel {
  std::string symbol;
  std::string code;     ///< cubin, or PTX text
  Resources resources;  ///< of a cubin; empty for PTX
  bool from_store = false;
};

/// Returns the key of a kernel's code in a store: a SHA-256 of its text without comments, lathe.cuh, the
/// architecture, and NVRTC's version and options. The text contains the symbol, so that profilers show the names of
/// the ops.
std::string code_key(const kernel::Kernel& kernel, const Nvrtc& nvrtc, const Arch& arch, Output output,
                     Indices indices = Indices::int32);

/// Compiles kernels on `threads` threads, or reads them from the store, which may be null. Unreadable entries of the
/// store are ignored.
std::vector<CompiledKernel> compile_kernels(const Nvrtc& nvrtc, std::span<const kernel::Kernel> kernels,
                                            const Arch& arch, Output output, ObjectStore* store, int threads = 2,
                                            Indices indices = Indices::int32);

}  // namespace lathe::cuda
