#pragma once

#include <string>
#include <string_view>

#include "ir/tensor/builder.h"
#include "ir/tensor/mesh/mesh_axis.h"

/// Exchanges between the processes of a mesh, as nodes of the graph that every process runs. The axis is named; its
/// number of processes is an attribute, the process's own position a run-time value, so that the graphs of all
/// processes are equal.
namespace lathe::ir {

/// Whether an op's value comes from several processes, or tells them apart: the ops of this file.
bool is_collective(const Op& op);
MeshAxis axis_of(const Node& collective);
/// What folds the values of processes: an addition for a reduce_scatter, for an all_reduce what it combines by.
ScalarOp fold_of(const Node& collective);

Value mesh_index(GraphBuilder& b, const MeshAxis& axis);  ///< i64[]
/// combine: sum, max or min.
Value all_reduce(const Value& a, const MeshAxis& axis, std::string_view combine);
/// Dim `dim`, of (outer, size) elements, becomes (outer, ranks, size): process r's part stands at index r. One that
/// gathers `again` is a node of its own beside the first, so that its value need not be kept until then.
Value all_gather(const Value& a, const MeshAxis& axis, int dim, const Dim& outer = 1, bool again = false);
/// The sum over processes; dim `dim`, of (outer, ranks, size) elements, becomes (outer, size).
Value reduce_scatter(const Value& a, const MeshAxis& axis, int dim, const Dim& outer = 1);

}  // namespace lathe::ir
