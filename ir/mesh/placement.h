#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/mesh/mesh.h"
#include "ir/support/dim.h"

/// How a value is placed on the processes of a mesh: along each axis whole, split, or partial.
namespace lathe::shard {

/// Each process holds all of it.
struct Whole {
  bool operator==(const Whole&) const = default;
};
/// Process r holds index r of the ranks of dim `dim`, viewed row-major as (outer, ranks, unit). All sizes are those
/// of the whole tensor. GPT-2's c_attn [d_model, 3*d_model] split on heads is {dim 1, outer 3}.
struct SplitDim {
  int dim;
  Dim outer, unit;
  bool operator==(const SplitDim&) const = default;
};
enum class Combine { sum, max, min };
/// The value is the combination of the values of all processes.
struct Partial {
  Combine combine;
  bool operator==(const Partial&) const = default;
};
using AxisPlacement = std::variant<Whole, SplitDim, Partial>;
using Placement = std::vector<AxisPlacement>;  ///< by axis of the mesh

std::string_view name(Combine combine);
/// "data: dim 0; model: dim 1 in 3 blocks", "model: partial sum", "whole".
std::string to_string(const Placement& placement, const Mesh& mesh);

}  // namespace lathe::shard
