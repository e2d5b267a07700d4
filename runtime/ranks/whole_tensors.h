#pragma once

#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "passes/shard/placement.h"
#include "runtime/ranks/ranks.h"

/// Between the parts of a tensor that ranks hold and the whole, as files hold it: so any mesh loads what another
/// saved.
namespace lathe {

/// This rank's part of a whole tensor; the tensor as it came where a rank has all of it. Throws UserError
/// [mesh_divide] where the size of a split dim does not divide.
HostTensor own_part(const Ranks& ranks, HostTensor whole, const shard::Placement& placement, const std::string& name);

/// The whole of the parts of all ranks, on each of them; all call it, for the same tensor. Parts are exchanged along
/// the axes over which it is split alone: one of several equal copies. Throws UserError [mesh_disagree] where ranks
/// hold other bits of the same part, [rank_failed], [rank_stalled].
HostTensor whole_of(Ranks& ranks, const HostTensor& own, const shard::Placement& placement, const std::string& name);

/// What a rank holds of a tensor.
struct OwnPart {
  std::string name;
  HostTensor value;
  shard::Placement placement;
};
/// whole_of() each, on rank 0 alone, by name; nothing on the others. What rank 0 holds whole is given as it came,
/// borrowed where that is.
Tensors wholes_on_first(Ranks& ranks, std::vector<OwnPart> parts);

/// own_part() of what rank 0 has; the others, which give null, receive theirs. All ranks call it, for the same
/// tensor.
HostTensor part_from_first(Ranks& ranks, const HostTensor* whole, const shard::Placement& placement,
                           const std::string& name);

}  // namespace lathe
