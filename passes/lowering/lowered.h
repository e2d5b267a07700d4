#pragma once

#include "passes/fusion/fusion.h"
#include "passes/program/program.h"

namespace lathe {

/// A graph, its fused regions, and the program they were lowered to.
struct Lowered {
  ir::Graph graph = {};
  FusionPlan regions = {};
  Program program = {};
};

}  // namespace lathe
