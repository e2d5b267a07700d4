#pragma once

#include <string>
#include <string_view>

#include "ir/tensor/builder.h"
#include "ir/tensor/mesh/exchange_kind.h"
#include "ir/tensor/mesh/mesh_axis.h"

/// Exchanges between the processes of a mesh, as nodes of the graph that every process runs. The axis is named; its
/// number of processes is an attribute, the process's own position a run-time value, so that the graphs of all
/// processes are equal.
namespace lathe::ir {

/// Whether an op's value comes from several processes, or tells them apart: the ops of this file.
bool is_collective(const Op& op);
MeshAxis axis_of(const Node& collective);
/// Of a collective that exchanges something: any but mesh_index.
ExchangeKind exchange_kind(const Op& collective);
/// The name of its op.
std::string_view name(ExchangeKind kind);
/// How many places further along the axis a send_recv sends: 0 to ranks - 1.
std::int64_t places_on(const Node& node);
/// What folds the values of processes: an addition for a reduce_scatter, for an all_reduce what it combines by.
ScalarOp fold_of(const Node& collective);

Value mesh_index(GraphBuilder& b, const MeshAxis& axis);  ///< i64[]
/// The size whose value it is once exchanges are flat: unknown in the graph, the same name on all processes.
std::string mesh_index_dim(std::string_view axis);
/// combine: sum, max or min.
Value all_reduce(const Value& a, const MeshAxis& axis, std::string_view combine);
/// Dim `dim`, of (outer, size) elements, becomes (outer, ranks, size): process r's part stands at index r. One that
/// gathers `again` is a node of its own beside the first, so that its value need not be kept until then.
Value all_gather(const Value& a, const MeshAxis& axis, int dim, const Dim& outer = 1, bool again = false);
/// The sum over processes; dim `dim`, of (outer, ranks, size) elements, becomes (outer, size).
Value reduce_scatter(const Value& a, const MeshAxis& axis, int dim, const Dim& outer = 1);
/// Process r's value goes to process r + offset, round the end of the axis; what comes is that of process r - offset.
/// One that sends `again` is a node of its own beside the first, so that what came need not be kept until then.
Value send_recv(const Value& a, const MeshAxis& axis, std::int64_t offset, bool again = false);

}  // namespace lathe::ir
