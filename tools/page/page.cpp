#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ir/support/visible.h"
#include "ir/tensor/constants.h"
#include "ir/tensor/explain/explain.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"
#include "tools/page/drawing.h"
#include "tools/page/embedded.h"
#include "tools/page/fill_page.h"
#include "tools/page/node_kind.h"

namespace lathe::tools {

namespace {

using Json = nlohmann::ordered_json;

/// Returns the attributes that differ from their defaults: "dim=-1, keepdim=true".
std::string attributes_text(const ir::Node& node) {
  std::string text;
  for (const auto& [name, value] : node.attrs.entries())
    if (!ir::is_default(*node.op, name, value))
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, ir::print_attribute(value));
  return text;
}

Json node_json(const ir::Graph& graph, ir::ValueId id, const ir::NodeMap<std::string>& labels) {
  const ir::Node& node = graph[id];
  Json json{{"id", id.index},
            {"label", labels[id]},
            {"op", node.op->name.value},
            {"kind", node_kind(*node.op)},
            {"name", node.name},
            {"type", ir::print_type(node.type)},
            {"shape", node.type.shape.to_string()},
            {"attrs", attributes_text(node)},
            {"text", ir::print_node(graph, id, labels, {.locations = false})},
            {"reason", ir::shape_reason(graph, id)},
            {"doc", node.op->doc.value},
            {"loc", node.loc.known() ? node.loc.place() : ""},
            {"scope", node.loc.scope()},
            {"gradient", node.loc.gradient()}};
  if (!node.type.is_contiguous()) json["strides"] = Shape(node.type.strides).to_string();
  const auto* custom = node.op->as<ir::Custom>();
  if (custom && custom->kind == ir::CustomKind::constant)
    if (const auto number = ir::written_number(graph, id)) json["number"] = ir::print_number(*number);
  if (ir::is_loop(node)) json["body"] = ir::print(ir::loop_body(node).graph(), {.locations = false});
  json["args"] = Json::array();
  for (const ir::ValueId operand : node.operands) json["args"].push_back(operand.index);
  return json;
}

Json graph_json(const ir::Graph& graph) {
  const auto labels = ir::value_labels(graph);
  Json json{{"name", graph.name},
            {"nodes", Json::array()},
            {"outputs", Json::array()},
            {"updates", Json::array()},
            {"checks", Json::array()}};
  for (const ir::ValueId id : ir::all_values(graph)) json["nodes"].push_back(node_json(graph, id, labels));
  for (const ir::Output& output : graph.outputs)
    json["outputs"].push_back({{"name", output.name}, {"value", output.value.index}});
  for (const ir::Update& update : graph.updates)
    json["updates"].push_back({{"state", update.state.index}, {"value", update.value.index}});
  for (const ir::DimCheck& check : graph.checks)
    json["checks"].push_back(fmt::format("{} {} {}  {} [{}] {}", check.left.to_string(),
                                         check.relation == ir::DimCheck::Relation::equal ? "==" : "<=",
                                         check.right.to_string(), check.op, check.label, check.loc.to_string()));
  return json;
}

/// Adds the regions in the order in which they run, and the region of each of their members.
void add_regions(Json& json, const FusionPlan& plan) {
  json["regions"] = Json::array();
  for (const Region& region : plan.regions) json["regions"].push_back(name(region.kind()));
  for (Json& node : json["nodes"]) {
    const ir::ValueId id{node["id"].get<int>()};
    if (plan.region_of[id] >= 0) node["region"] = plan.region_of[id];
    if (plan.stored[id]) node["stored"] = true;
    if (plan.inlined[id]) node["inlined"] = true;
  }
}

}  // namespace

std::string html_page(const ir::Graph& graph, const PageExtras& extras) {
  std::string script;
  for (const std::string_view part : {embedded_model_js, embedded_layout_js, embedded_draw_js, embedded_main_js})
    script += part;
  Json json = graph_json(graph);
  if (extras.regions) add_regions(json, *extras.regions);
  return fill_page(embedded_page_html, {{"{{title}}", escaped_html(visible(graph.name))},
                                        {"{{css}}", std::string(embedded_page_css)},
                                        {"{{script}}", script},
                                        {"{{memory}}", extras.memory},
                                        {"{{data}}", script_json(json)}});
}

}  // namespace lathe::tools
