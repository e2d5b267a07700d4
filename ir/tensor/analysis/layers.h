#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Consecutive identical layers of a model, such as decoder.1 .. decoder.11, which dumps show once. A layer is
/// identified by the first number in the path of a value's scope, or in an argument's name.
struct RepeatedLayers {
  std::size_t begin = 0;   ///< start of the first layer in the list of values
  std::size_t second = 0;  ///< start of the second
  std::size_t end = 0;     ///< one past the last value of the last
  std::string prefix;      ///< "decoder"
  bool gradient = false;
  std::vector<int> layers;  ///< layer numbers in list order: at least two
};

/// Finds repeated layers in a list of a graph's values, in order. Layers repeat if they have the same ops, attributes
/// (except random streams), types, and operands at the same position or outside the layer.
std::vector<RepeatedLayers> repeated_layers(const Graph& graph, std::span<const ValueId> values);

/// Returns "decoder.1 .. decoder.11".
std::string to_string(const RepeatedLayers& repeated);

}  // namespace lathe::ir
