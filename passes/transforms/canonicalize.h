#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// One form for what can be written in several ways. Each rule keeps the meaning to the last bit (the sign of a zero
/// aside where a rule says so) and stands with its before -> after in canonicalize_views.cpp,
/// canonicalize_algebra.cpp, canonicalize_joins.cpp and canonicalize_contract.cpp. Rules run until none fires.
Graph canonicalize(Graph graph);

}  // namespace lathe::ir
