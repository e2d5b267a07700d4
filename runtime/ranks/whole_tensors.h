#pragma once

#include <optional>
#include <string>

#include "ir/support/host_tensor.h"
#include "passes/shard/placement.h"
#include "runtime/ranks/ranks.h"

/// Between the parts of a tensor that ranks hold and the whole, as files hold it: so any mesh loads what another
/// saved.
namespace lathe {

/// This rank's part of a whole tensor. Throws UserError [mesh_divide] where the size of a split dim does not divide.
HostTensor own_part(const Ranks& ranks, const HostTensor& whole, const shard::Placement& placement,
                    const std::string& name);

/// The whole of the parts of all ranks, on each of them; all call it, for the same tensor. Parts are exchanged along
/// the axes over which it is split alone: one of several equal copies. Throws UserError [mesh_disagree] where ranks
/// hold other bits of the same part, [rank_failed], [rank_stalled].
HostTensor whole_of(Ranks& ranks, const HostTensor& own, const shard::Placement& placement, const std::string& name);

/// Whether every process holds all of it.
bool is_whole(const shard::Placement& placement);

/// whole_of() on rank 0 alone; nothing on the others, which send their parts.
std::optional<HostTensor> whole_on_first(Ranks& ranks, const HostTensor& own, const shard::Placement& placement,
                                         const std::string& name);

/// own_part() of what rank 0 has; the others, which give null, receive theirs. All ranks call it, for the same
/// tensor.
HostTensor part_from_first(Ranks& ranks, const HostTensor* whole, const shard::Placement& placement,
                           const std::string& name);

}  // namespace lathe
