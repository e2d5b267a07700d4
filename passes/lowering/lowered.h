#pragma once

#include "passes/fusion/fusion.h"
#include "passes/lowering/program.h"

namespace lathe {

/// What became of a prepared graph.
struct Lowered {
  ir::Graph graph;  ///< as prepared; with a memory budget, with what is computed again for late readers
  FusionPlan regions;
  Program program;
};

}  // namespace lathe
