#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/index_width.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/resources.h"
#include "ir/kernel/kernel.h"
#include "ir/support/object_store.h"

namespace lathe::cuda {

struct CompiledKernel {
  std::string symbol;
  std::string code;     ///< cubin, or PTX text
  Resources resources;  ///< of a cubin; of PTX nothing is known
  bool from_store = false;
};

/// The key of a kernel's code in a store: a SHA-256 of its text without comments, lathe.cuh, the architecture,
/// NVRTC's version and options. The symbol is part of the text, so that profilers show the names of the ops.
std::string code_key(const kernel::Kernel& kernel, const Nvrtc& nvrtc, const Arch& arch, Output output,
                     Indices indices = Indices::int32);

/// Compiles kernels, on some threads at once, or takes them from the store, which may be null. An entry of the store
/// that cannot be read counts as none.
std::vector<CompiledKernel> compile_kernels(const Nvrtc& nvrtc, std::span<const kernel::Kernel> kernels,
                                            const Arch& arch, Output output, ObjectStore* store, int threads = 2,
                                            Indices indices = Indices::int32);

}  // namespace lathe::cuda
