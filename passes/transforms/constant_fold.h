#pragma once

#include <cstdint>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Computes values that depend on constants alone with the interpreter, if the result is small and its size is known:
///   %1 = constant {values=[2.0]}; %2 = sqrt %1   ->   %2 = constant {values=[1.4142135623730951]}
/// Views of constants and bare iotas are unchanged. So are values with more than `limit` elements, such as masks
/// computed from iotas: computing them where they are needed is cheaper than loading them.
Graph constant_fold(Graph graph, std::int64_t limit = 64);

}  // namespace lathe::ir
