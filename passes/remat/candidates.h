#pragma once

#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/fusion/fusion.h"
#include "passes/transforms/recompute.h"

namespace lathe {

/// Values of one kind that are live during a region without being used there, and how to compute them again for their
/// later readers.
struct RematCandidate {
  std::string key;  ///< "gelu f32[B, T, 3072] gpt.cpp:83": the same for this value in every layer
  std::vector<ir::Recomputation> copies;
  double bytes = 0, work = 0;  ///< bytes that it frees; rough number of operations to compute them again
};

/// Returns the candidates at region `peak`, those with most bytes for their work first.
std::vector<RematCandidate> remat_candidates(const ir::Graph& graph, const FusionPlan& plan, int peak,
                                             const DimBindings& dims);

}  // namespace lathe
