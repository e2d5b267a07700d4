#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/dim.h"
#include "ir/tensor/graph.h"

namespace lathe::pt2 {

/// Returns the size of a dim of an input; nothing for an unknown one.
using InputSize = std::function<std::optional<Dim>(std::string_view input, std::size_t dim)>;

/// Parses a guard of torch.export, Python code that compares sizes of inputs: "2*L['x'].size()[0] <=
/// L['y'].size()[1]". Returns nothing for a guard that no run-time check expresses, such as one with != or %.
std::optional<ir::DimCheck> parse_guard(std::string_view guard, const InputSize& size_of);

}  // namespace lathe::pt2
