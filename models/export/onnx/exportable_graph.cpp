#include "models/export/onnx/exportable_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ir/ops/composites/composites.h"
#include "ir/support/error.h"
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

/// The parts of a graph that are not exported, with their lines.
using Unsupported = std::map<std::string, std::vector<std::string>>;

Unsupported unsupported_parts(const ir::Graph& graph) {
  Unsupported parts;
  for (const ir::Update& update : graph.updates)
    parts["a value is updated in place: ONNX has no such values, so make it an input, and its update an output"]
        .push_back(fmt::format("%{}", graph[update.state].name));
  for (const ir::Node& node : graph.nodes) {
    if (node.op->as<ir::Argument>()) continue;
    const ExportRecord* const record = find_export(*node.op);
    if (record && record->emit) continue;
    const std::string_view reason = record ? record->as : "Lathe does not know how ONNX computes it";
    std::vector<std::string>& lines = parts[fmt::format("the op {}: {}", node.op->name.value, reason)];
    if (std::ranges::find(lines, node.loc.place()) == lines.end()) lines.push_back(node.loc.place());
  }
  return parts;
}

void require_supported(const ir::Graph& graph) {
  const Unsupported parts = unsupported_parts(graph);
  if (parts.empty()) return;
  std::string list;
  for (const auto& [part, lines] : parts) {
    constexpr std::size_t most = 8;
    list += (list.empty() ? "" : "\n  ") + part + "\n    ";
    for (std::size_t i = 0; i < std::min(most, lines.size()); ++i) list += (i == 0 ? "" : ", ") + lines[i];
    if (lines.size() > most) list += fmt::format(" and {} more", lines.size() - most);
  }
  throw UserError(fmt::format("the graph @{} has {} that ONNX does not have", graph.name,
                              parts.size() == 1 ? "a part" : fmt::format("{} parts", parts.size())),
                  "export_unsupported", list);
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
