#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// Selects parameters by name, shape or dtype.
using ParameterFilter = std::function<bool(const ir::Node& parameter)>;
/// Selects parameters of rank >= 2: the usual group with weight decay (no biases, no norms).
ParameterFilter matrices();
/// Select parameters whose name contains one of `parts`, or none of them.
ParameterFilter names_with(std::vector<std::string> parts);
ParameterFilter names_without(std::vector<std::string> parts);

}  // namespace lathe
