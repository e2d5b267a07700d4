#include "models/export/onnx/exportable_graph.h"

#include <fmt/core.h>

#include <functional>
#include <optional>
#include <span>

#include "ir/ops/composites/composites.h"
#include "ir/support/reports/unsupported_parts.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"
#include "models/export/onnx/nodes/export_table.h"
#include "models/export/onnx/recognize_attention.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/dtypes/decompose_complex.h"
#include "passes/transforms/rebuild.h"

namespace lathe::onnx {

namespace {

/// Whether a composite stays as it is: it is exported, or it has no export and is reported.
bool is_kept(const ir::Node& node, std::span<const ir::Value> operands, std::int64_t opset) {
  const ExportRecord* const record = find_export(*node.op);
  if (!record) return false;
  if (!record->emit) return true;
  return !record->fits || record->fits(node, operands, opset);
}

/// One level per round: an expansion may contain composites.
ir::Graph expanded(ir::Graph graph, std::int64_t opset) {
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    const auto once = [&](ir::GraphBuilder& builder, const ir::Node& node,
                          std::span<const ir::Value> operands) -> std::optional<ir::Value> {
      const auto* composite = node.op->as<ir::Composite>();
      if (!composite || is_kept(node, operands, opset)) return std::nullopt;
      is_changed = true;
      return composite->expand(builder, node, operands);
    };
    graph = ir::dce(ir::rebuild(graph, once));
  }
  return graph;
}

void add_unsupported_ops(const ir::Graph& graph, UnsupportedParts& parts) {
  for (const ir::Node& node : graph.nodes) {
    if (node.op->as<ir::Argument>()) continue;
    if (ir::is_loop(node)) add_unsupported_ops(ir::loop_body(node).graph(), parts);
    const ExportRecord* const record = find_export(*node.op);
    if (record && record->emit) continue;
    parts.add(fmt::format("the op {} ({})", node.op->name.value,
                          record ? record->as : "Lathe does not know how ONNX computes it"),
              node.loc.place());
  }
}

void require_supported(const ir::Graph& graph) {
  UnsupportedParts parts;
  for (const ir::Update& update : graph.updates)
    parts.add("a value is updated in place (ONNX has no such values, so make it an input, and its update an output)",
              fmt::format("%{}", graph[update.state].name));
  add_unsupported_ops(graph, parts);
  parts.report(fmt::format("the graph @{}", graph.name), "ONNX does not have", "export_unsupported");
}

/// Changes a graph and the bodies of its loops.
ir::Graph everywhere(ir::Graph graph, const std::function<ir::Graph(ir::Graph)>& change) {
  return change(ir::on_bodies(std::move(graph), change));
}

}  // namespace

ir::Graph exportable_graph(const ir::Graph& graph, std::int64_t opset) {
  ir::Graph result =
      everywhere(ir::dce(graph), [](ir::Graph each) { return ir::decompose_complex(std::move(each)); });
  const auto recognized = [](ir::GraphBuilder&, const ir::Node& node, std::span<const ir::Value> operands) {
    return recognized_attention(node, operands);
  };
  result = everywhere(std::move(result), [&](ir::Graph each) {
    if (opset >= 23) each = ir::dce(ir::rebuild(each, recognized));
    return expanded(std::move(each), opset);
  });
  require_supported(result);
  return result;
}

}  // namespace lathe::onnx
