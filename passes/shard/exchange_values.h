#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"
#include "passes/shard/placement.h"

/// Parts of host tensors, and what collectives make of them.
namespace lathe::shard {

/// The part of a whole tensor that a process holds. `bindings` tell the number of blocks that a dim is split within,
/// where its size does not. Throws UserError [mesh_divide], naming the tensor, where the size of a dim does not
/// divide, or the number of blocks is not told.
HostTensor part_of(HostTensor whole, const Placement& placement, const Mesh& mesh, std::int64_t process,
                   const std::string& name, const DimBindings& bindings = {});

/// Whether a process is the first of those that hold the same part.
bool holds_first_copy(const Placement& placement, const Mesh& mesh, std::int64_t process);
/// Throws UserError [mesh_disagree], naming the tensor, where two processes that hold the same part do not hold the
/// same values, as `same` says of them.
void require_same_copies(const Placement& placement, const Mesh& mesh, const std::string& name,
                         const std::function<bool(std::int64_t a, std::int64_t b)>& same);

/// The whole of the parts of all processes, of which the first copies alone are looked at.
HostTensor join_parts(std::span<const HostTensor> parts, const Placement& placement, const Mesh& mesh,
                      const std::string& name, const DimBindings& bindings = {});

/// The same, of one process's part: `gather` gives the parts of the processes along an axis of it, and is called for
/// an axis after another with what it has joined so far.
using GatherParts = std::function<std::vector<HostTensor>(const HostTensor& own, int axis)>;
HostTensor join_gathered(HostTensor own, const Placement& placement, const Mesh& mesh, const std::string& name,
                         const GatherParts& gather, const DimBindings& bindings = {});

/// What a collective gives to the process at `index` along its axis; `group` are the operands of the processes along
/// it, in its evaluation dtype (ir/tensor/interpret/evaluate.h). A sum goes in the order of the group.
HostTensor exchange_value(const ir::Node& node, std::span<const HostTensor* const> group, std::int64_t index,
                          const DimBindings& bindings);

}  // namespace lathe::shard
