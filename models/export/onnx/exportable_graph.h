#pragma once

#include <cstdint>

#include "ir/tensor/graph.h"

namespace lathe::onnx {

/// Returns the graph with only ops that have records in an opset: complex values become pairs of reals, attentions in
/// steps become one op if the opset has it, and other composites are expanded. Throws UserError [export_unsupported]
/// with all parts of the graph that ONNX cannot express, and their lines.
ir::Graph exportable_graph(const ir::Graph& graph, std::int64_t opset);

}  // namespace lathe::onnx
