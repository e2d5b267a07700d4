#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Rewrites equivalent forms to a canonical one. Each rule keeps the meaning to the last bit, except for the sign of
/// a zero where a rule says so. The rules, with their before -> after, are in canonicalize_views.cpp,
/// canonicalize_algebra.cpp, canonicalize_joins.cpp and canonicalize_contract.cpp. Rules run until none fires.
Graph canonicalize(Graph graph);

}  // namespace lathe::ir
