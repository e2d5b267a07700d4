#include "models/export/onnx/exportable_graph.h"

#include <fmt/core.h>

#include <optional>
#include <span>

#include "ir/ops/composites/composites.h"
#include "ir/support/reports/unsupported_parts.h"
#include "ir/tensor/op/op.h"
#include "models/export/onnx/export_table.h"
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

void require_supported(const ir::Graph& graph) {
  UnsupportedParts parts;
  for (const ir::Update& update : graph.updates)
    parts.add("a value is updated in place (ONNX has no such values, so make it an input, and its update an output)",
              fmt::format("%{}", graph[update.state].name));
  for (const ir::Node& node : graph.nodes) {
    if (node.op->as<ir::Argument>()) continue;
    const ExportRecord* const record = find_export(*node.op);
    if (record && record->emit) continue;
    parts.add(fmt::format("the op {} ({})", node.op->name.value,
                          record ? record->as : "Lathe does not know how ONNX computes it"),
              node.loc.place());
  }
  parts.report(fmt::format("the graph @{}", graph.name), "ONNX does not have", "export_unsupported");
}

}  // namespace

ir::Graph exportable_graph(const ir::Graph& graph, std::int64_t opset) {
  ir::Graph result = ir::decompose_complex(ir::dce(graph));
  if (opset >= 23) {
    const auto recognized = [](ir::GraphBuilder&, const ir::Node& node, std::span<const ir::Value> operands) {
      return recognized_attention(node, operands);
    };
    result = ir::dce(ir::rebuild(result, recognized));
  }
  result = expanded(std::move(result), opset);
  require_supported(result);
  return result;
}

}  // namespace lathe::onnx
