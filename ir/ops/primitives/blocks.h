#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "ir/ops/rules/operand_rules.h"
#include "ir/support/tensors/host_tensor.h"

/// Helpers for the references of ops that move blocks of elements along one dim.
namespace lathe::ir::ops {

inline int dim_of(const Node& node, int rank) {
  return rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank);
}

/// The number of elements before, in and after dim d, as a 3-dim tensor.
struct Blocks {
  std::int64_t outer = 1, size = 1, inner = 1;
};
inline Blocks blocks_of(const std::vector<std::int64_t>& sizes, int d) {
  Blocks blocks;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    (static_cast<int>(i) < d ? blocks.outer : (static_cast<int>(i) == d ? blocks.size : blocks.inner)) *= sizes[i];
  return blocks;
}

/// DimRule for ops that treat all dims except `dim` of their operand alike.
inline std::vector<DimPair> dims_beside(const Graph&, const Node& node) {
  const int rank = node.type.rank(), d = dim_of(node, rank);
  std::vector<DimPair> pairs;
  for (int i = 0; i < rank; ++i)
    if (i != d) pairs.push_back({0, i, i});
  return pairs;
}

inline void copy_elements(const HostTensor& from, std::int64_t at, HostTensor& to, std::int64_t to_at,
                          std::int64_t count) {
  if (count == 0) return;
  const auto size = static_cast<std::int64_t>(size_in_bytes(from.dtype()));
  std::memcpy(to.data() + to_at * size, from.data() + at * size, static_cast<std::size_t>(count * size));
}

}  // namespace lathe::ir::ops
