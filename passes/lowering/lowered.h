#pragma once

#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/lowering/program/program.h"
#include "passes/pipeline/pass_run.h"

namespace lathe {

/// A prepared graph in regions, before there are kernels.
struct Fused {
  ir::Graph graph;
  FusionPlan regions;
  std::vector<ir::PassRun> stages = {};  ///< as it ran: fuse
};

/// What became of a prepared graph.
struct Lowered {
  ir::Graph graph;  ///< as prepared; with a memory budget, with what is computed again for late readers
  FusionPlan regions;
  Program program;
  std::vector<ir::PassRun> stages =
      {};  ///< as they ran: rematerialize, with a memory budget; fuse; kernels; exchanges
};

}  // namespace lathe
