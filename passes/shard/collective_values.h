#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/mesh/placement.h"
#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/graph.h"

/// Shards of host tensors, and the results of collectives.
namespace lathe::shard {

/// Returns the shard of a whole tensor that a process holds. `bindings` give the number of blocks that a dim is split
/// within, if its size does not. Throws UserError [mesh_divide], with the tensor's name, if the size of a dim does
/// not divide or the number of blocks is unknown.
HostTensor part_of(HostTensor whole, const Placement& placement, const Mesh& mesh, std::int64_t process,
                   const std::string& name, const DimBindings& bindings = {});

/// Whether no process with a lower number holds the same shard.
bool holds_first_copy(const Placement& placement, const Mesh& mesh, std::int64_t process);
/// Throws UserError [mesh_disagree], with the tensor's name, if two processes with the same shard have different
/// values. `same` compares the values of two processes.
void require_same_copies(const Placement& placement, const Mesh& mesh, const std::string& name,
                         const std::function<bool(std::int64_t a, std::int64_t b)>& same);

/// Returns the whole tensor from the shards of all processes; reads only first copies.
HostTensor join_parts(std::span<const HostTensor> parts, const Placement& placement, const Mesh& mesh,
                      const std::string& name, const DimBindings& bindings = {});

/// Returns the whole tensor from the shard of one process. `gather` returns the shards of the processes along an
/// axis. It is called for one axis at a time, with the result of the previous axes.
using GatherParts = std::function<std::vector<HostTensor>(const HostTensor& own, int axis)>;
HostTensor join_gathered(HostTensor own, const Placement& placement, const Mesh& mesh, const std::string& name,
                         const GatherParts& gather, const DimBindings& bindings = {});

/// Returns the result of a collective on the process at `index` along its axis. `group` has the operands of the
/// processes along the axis, in the evaluation dtype (ir/tensor/interpret/evaluate.h). Sums are computed in the order
/// of the group.
HostTensor collective_value(const ir::Node& node, std::span<const HostTensor* const> group, std::int64_t index,
                            const DimBindings& bindings);

}  // namespace lathe::shard
