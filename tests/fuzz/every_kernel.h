#pragma once

#include "ir/support/object_store.h"
#include "runtime/compile.h"
#include "tests/fuzz/reference.h"

namespace lathe::fuzz {

/// Runs a compiled program in the kernel interpreter, which checks each access against the bounds of its buffer.
/// Skipped if each launch's kernel already ran so in this process, with the same dims.
std::optional<std::string> interpret_new_kernels(const ir::Graph& graph, const Executable& executable,
                                                 const DimBindings& dims, const Tensors& arguments);

}  // namespace lathe::fuzz
