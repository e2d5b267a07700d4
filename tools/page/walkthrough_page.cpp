#include "tools/page/walkthrough_page.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ir/support/tensors/complex_elements.h"
#include "ir/support/visible.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/explain/explain.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"
#include "tools/page/embedded.h"
#include "tools/page/fill_page.h"
#include "tools/page/node_kind.h"

namespace lathe::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t most_numbers = 4096;

/// A number, or "nan", "inf", "-inf", which JSON does not have. Six digits are enough to read.
Json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return std::stod(fmt::format("{:.6g}", value));
}

Json numbers_of(const HostTensor& tensor) {
  Json numbers = Json::array();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    if (!is_complex(tensor.dtype())) {
      numbers.push_back(json_number(tensor.get(i)));
      continue;
    }
    const auto element = get_complex(tensor, i);
    numbers.push_back(fmt::format("{:.3g}{:+.3g}i", element.real(), element.imag()));
  }
  return numbers;
}

/// Attributes as JSON where their IR text is JSON (numbers, lists, booleans, texts), otherwise as text.
Json attributes_of(const ir::Node& node) {
  Json json = Json::object();
  for (const auto& [name, value] : node.attrs.entries()) {
    const std::string text = ir::print_attribute(value);
    json[name] = Json::accept(text) ? Json::parse(text) : Json(text);
  }
  return json;
}

Json value_json(const ir::Graph& graph, ir::ValueId id, const ir::NodeMap<std::string>& labels,
                const HostTensor& value) {
  const ir::Node& node = graph[id];
  Json dims = Json::array(), args = Json::array();
  for (int d = 0; d < node.type.shape.rank(); ++d) {
    const Dim& dim = node.type.shape[d];
    dims.push_back(dim.name().empty() ? dim.to_string() : dim.name());
  }
  for (const ir::ValueId operand : node.operands) args.push_back(operand.index);
  Json json{{"id", id.index},
            {"label", labels[id]},
            {"name", node.name},
            {"op", node.op->name.value},
            {"kind", node_kind(*node.op)},
            {"doc", node.op->doc.value},
            {"reason", ir::shape_reason(graph, id)},
            {"text", ir::print_node(graph, id, labels, {.locations = false})},
            {"loc", node.loc.known() ? node.loc.to_string() : ""},
            {"dtype", name(node.type.dtype)},
            {"shape", node.type.shape.to_string()},
            {"dims", std::move(dims)},
            {"sizes", value.shape()},
            {"args", std::move(args)},
            {"attrs", attributes_of(node)},
            {"readers", Json::array()},
            {"outputs", Json::array()}};
  if (value.numel() <= most_numbers) json["values"] = numbers_of(value);
  return json;
}

/// The steps: the arguments of each kind, then one per computed value. Constants are shown where they are read.
Json steps_of(const ir::Graph& graph) {
  Json steps = Json::array();
  const auto given = [&](std::string_view op, std::string_view heading, std::string_view what) {
    Json ids = Json::array();
    for (const ir::ValueId id : graph.arguments())
      if (graph[id].op->name.value == op) ids.push_back(id.index);
    if (!ids.empty()) steps.push_back({{"given", heading}, {"what", what}, {"values", std::move(ids)}});
  };
  given("input", "inputs", "The values that the graph is given.");
  given("parameter", "parameters", "Learned weights, here from the files that were given, or random.");
  given("state", "states", "Values that are kept from run to run.");
  for (const ir::ValueId id : ir::all_values(graph)) {
    const ir::Node& node = graph[id];
    if (!node.op->as<ir::Argument>() && node.op->name.value != "constant") steps.push_back({{"value", id.index}});
  }
  return steps;
}

}  // namespace

std::string walkthrough_page(const ir::Graph& graph, const Tensors& arguments, const ir::InterpretOptions& options) {
  std::vector<ir::ValueId> ids;
  for (const ir::ValueId id : ir::all_values(graph)) ids.push_back(id);
  const std::vector<HostTensor> values = ir::interpret_values(graph, arguments, ids, options);
  const auto labels = ir::value_labels(graph);
  const ir::Users users(graph);
  Json data{{"name", graph.name}, {"values", Json::array()}, {"steps", steps_of(graph)}};
  for (const ir::ValueId id : ids) {
    Json json = value_json(graph, id, labels, values[static_cast<std::size_t>(id.index)]);
    ir::ValueId last;
    for (const ir::ValueId user : users[id])
      if (user != last) json["readers"].push_back((last = user).index);
    for (const ir::Output& output : graph.outputs)
      if (output.value == id) json["outputs"].push_back(output.name);
    data["values"].push_back(std::move(json));
  }
  return fill_page(embedded_walkthrough_html,
                   {{"{{title}}", escaped_html(visible(graph.name))},
                    {"{{css}}", std::string(embedded_walkthrough_css)},
                    {"{{script}}", std::string(embedded_numbers_js) + std::string(embedded_walkthrough_js)},
                    {"{{data}}", script_json(data)}});
}

}  // namespace lathe::tools
