#pragma once

/// Compilation of graphs to C libraries, which need neither Lathe nor LLVM.
#include "runtime/emit_library.h"
#include "runtime/write_library.h"
