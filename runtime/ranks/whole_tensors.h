#pragma once

#include <string>
#include <vector>

#include "ir/mesh/placement.h"
#include "ir/support/tensors/tensors.h"
#include "runtime/ranks/ranks.h"

/// Conversion between the parts of a tensor that ranks hold and whole tensors. Files hold whole tensors, so that any
/// mesh can load them.
namespace lathe {

/// Returns this rank's part of a whole tensor, or the tensor itself if the rank has all of it. Throws UserError
/// [mesh_divide] if the size of a split dim is not divisible.
HostTensor own_part(const Ranks& ranks, HostTensor whole, const shard::Placement& placement, const std::string& name);

/// Returns the whole tensor on all ranks. Must be called by all ranks for the same tensor. Parts are exchanged only
/// along the axes over which the tensor is split; one copy of each part is used. Throws UserError [mesh_disagree] if
/// copies of a part differ, [rank_failed], [rank_stalled].
HostTensor whole_of(Ranks& ranks, const HostTensor& own, const shard::Placement& placement, const std::string& name);

/// This rank's part of a tensor.
struct OwnPart {
  std::string name;
  HostTensor value;
  shard::Placement placement;
};
/// Returns whole_of() for each tensor by name on rank 0, and nothing on other ranks. Tensors that rank 0 holds whole
/// are returned as they are, borrowed if they were borrowed.
Tensors wholes_on_first(Ranks& ranks, std::vector<OwnPart> parts);

/// Returns own_part() of rank 0's tensor. Other ranks pass null and receive their parts. Must be called by all ranks
/// for the same tensor.
HostTensor part_from_first(Ranks& ranks, const HostTensor* whole, const shard::Placement& placement,
                           const std::string& name);

}  // namespace lathe
