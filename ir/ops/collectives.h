#pragma once

#include <string>
#include <string_view>

#include "ir/support/numbers/scalar_op.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/mesh/collective_kind.h"
#include "ir/tensor/mesh/mesh_axis.h"

/// Collectives between the processes of a mesh, as nodes of the graph that every process runs. The axis is identified
/// by name and its number of processes is an attribute. The rank of a process is a run-time value, so that all
/// processes run equal graphs.
namespace lathe::ir {

/// Returns whether an op's value depends on other processes or on the own rank: the ops of this file.
bool is_collective(const Op& op);
MeshAxis axis_of(const Node& collective);
/// Returns the kind of a collective that communicates: all except mesh_index.
CollectiveKind collective_kind(const Op& collective);
/// Returns the name of the kind's op.
std::string_view name(CollectiveKind kind);
/// Returns the distance along the axis that a send_recv sends: 0 to ranks - 1.
std::int64_t places_on(const Node& node);
/// Returns the reduction of a collective: add for reduce_scatter, the op of `combine` for all_reduce.
ScalarOp fold_of(const Node& collective);

Value mesh_index(GraphBuilder& b, const MeshAxis& axis);  ///< i64[]
/// Returns the dim that holds mesh_index once collectives are flat: an unknown, with the same name on all processes.
std::string mesh_index_dim(std::string_view axis);
/// combine: "sum", "max" or "min".
Value all_reduce(const Value& a, const MeshAxis& axis, std::string_view combine);
/// Gathers dim `dim` of (outer, size) elements to (outer, ranks, size), with the shard of rank r at index r. With
/// `again` it is a separate node that repeats the first gather, so that its value need not stay live in between.
Value all_gather(const Value& a, const MeshAxis& axis, int dim, const Dim& outer = 1, bool again = false);
/// Returns the sum over processes, scattered: dim `dim` of (outer, ranks, size) elements becomes (outer, size).
Value reduce_scatter(const Value& a, const MeshAxis& axis, int dim, const Dim& outer = 1);
/// Sends the value of rank r to rank r + offset, modulo the axis; receives that of rank r - offset. With `again` it
/// is a separate node that repeats the first send, so that its value need not stay live in between.
Value send_recv(const Value& a, const MeshAxis& axis, std::int64_t offset, bool again = false);

}  // namespace lathe::ir
