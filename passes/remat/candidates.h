#pragma once

#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/fusion/fusion.h"
#include "passes/transforms/recompute.h"

namespace lathe {

/// Values of one kind that are alive during a region without being used there, and how to compute them again for
/// whoever reads them later.
struct RematCandidate {
  std::string key;  ///< "gelu f32[B, T, 3072] gpt.cpp:83": the same for the same value of every layer
  std::vector<ir::Recomputation> copies;
  double bytes = 0, work = 0;  ///< that it frees; rough operations to compute them again
};

/// The candidates at region `peak`, most bytes for their work first. `memory_work` as the machine has it (CpuInfo).
std::vector<RematCandidate> remat_candidates(const ir::Graph& graph, const FusionPlan& plan, int peak,
                                             const DimBindings& dims, double memory_work);

}  // namespace lathe
