#pragma once

#include <chrono>
#include <functional>

#include "tests/fuzz/graph_generator.h"

namespace lathe::fuzz {

/// A smaller case that still fails: outputs and updates are dropped, runs of nodes replaced by arguments or by one of
/// their operands, sizes left out and halved, over and over until nothing goes any more or the time is up. `fails`
/// is asked for every candidate.
Case shrink(Case from, const std::function<bool(const Case&)>& fails, std::chrono::seconds limit);

}  // namespace lathe::fuzz
