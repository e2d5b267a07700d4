#pragma once

#include <cstdint>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Computes, with the interpreter, what depends on constants alone, where the result is small and its size is known:
///   %1 = constant {values=[2.0]}; %2 = sqrt %1   ->   %2 = constant {values=[1.4142135623730951]}
/// Views of constants and bare iotas stay as they are, and so does what has more than `limit` elements, such as the
/// masks made of iotas: those are cheaper to compute where they are needed than to load.
Graph constant_fold(Graph graph, std::int64_t limit = 64);

}  // namespace lathe::ir
