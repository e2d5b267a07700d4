#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// A pass: one pure function with a name. It is given its graph to keep, so that one that has nothing to do copies
/// nothing.
struct Pass {
  std::string name;
  std::string doc;
  std::function<Graph(Graph)> run;
  bool runs_on_bodies = true;  ///< of loops too, before the graph that contains them
};
using Pipeline = std::vector<Pass>;

}  // namespace lathe::ir
