#pragma once

#include <chrono>
#include <functional>

#include "tests/fuzz/graph_generator.h"

namespace lathe::fuzz {

/// Returns a smaller case that still fails: drops outputs and updates, replaces runs of nodes with arguments or with
/// one of their operands, drops and halves sizes, until nothing more can be reduced or the time is up. Calls `fails`
/// for every candidate.
Case shrink(Case from, const std::function<bool(const Case&)>& fails, std::chrono::seconds limit);

}  // namespace lathe::fuzz
