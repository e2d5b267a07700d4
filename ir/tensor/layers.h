#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Layers of a model that do the same one after the other, such as decoder.1 .. decoder.11: what a reader wants to
/// see once. A layer is told by the first number in the path of a value's scope, or in an argument's name.
struct RepeatedLayers {
  std::size_t begin = 0;   ///< where the first layer starts in the list of values
  std::size_t second = 0;  ///< where the second starts
  std::size_t end = 0;     ///< one past the last value of the last
  std::string prefix;      ///< "decoder"
  bool gradient = false;
  std::vector<int> layers;  ///< their numbers, in the order of the list: at least two
};

/// Finds them in a list of a graph's values, in order. Layers repeat when they have the same ops, attributes (random
/// streams aside), types, and operands that stand in the same place or outside of the layer.
std::vector<RepeatedLayers> repeated_layers(const Graph& graph, std::span<const ValueId> values);

/// "decoder.1 .. decoder.11"
std::string to_string(const RepeatedLayers& repeated);

}  // namespace lathe::ir
