#include "models/import/pt2/program/read_arguments.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lathe::pt2 {

namespace {

using Kind = Argument::Kind;

Argument of_value(std::string name) {
  Argument argument{.kind = Kind::value};
  argument.text = std::move(name);
  return argument;
}

Argument of_integer(std::int64_t number, Kind kind = Kind::integer) {
  Argument argument{.kind = kind};
  argument.integer = number;
  return argument;
}

/// A symbolic number is the name of a value, or a number.
Argument read_symbolic(const JsonFields& json) {
  const auto [kind, value] = json.kind();
  if (kind == "as_name") return of_value(value.text());
  if (kind == "as_int") return of_integer(value.integer());
  if (kind == "as_bool") return of_integer(value.boolean() ? 1 : 0, Kind::boolean);
  if (kind != "as_float") json.fail("has an unknown kind");
  Argument argument{.kind = Kind::real};
  argument.real = value.real();
  return argument;
}

Argument read_values(const JsonFields& json) {
  Argument argument{.kind = Kind::values};
  for (const JsonFields& each : json.elements()) argument.texts.push_back(read_name(each));
  return argument;
}

Argument read_optional_values(const JsonFields& json) {
  Argument argument{.kind = Kind::values};
  for (const JsonFields& each : json.elements()) {
    const auto [kind, value] = each.kind();
    if (kind != "as_tensor" && kind != "as_none") each.fail("has an unknown kind");
    argument.texts.push_back(kind == "as_tensor" ? read_name(value) : "");
  }
  return argument;
}

Argument read_sizes(const JsonFields& json) {
  Argument argument{.kind = Kind::sizes};
  for (const JsonFields& each : json.elements()) {
    const auto [kind, value] = each.kind();
    if (kind == "as_name")
      argument.sizes.emplace_back(value.text());
    else if (kind == "as_int")
      argument.sizes.emplace_back(value.integer());
    else
      each.fail("has an unknown kind");
  }
  return argument;
}

Argument read_integers(const JsonFields& json, Kind kind) {
  Argument argument{.kind = kind};
  for (const JsonFields& each : json.elements())
    argument.integers.push_back(kind == Kind::booleans ? (each.boolean() ? 1 : 0) : each.integer());
  return argument;
}

Argument read_reals(const JsonFields& json) {
  Argument argument{.kind = Kind::reals};
  for (const JsonFields& each : json.elements()) argument.reals.push_back(each.real());
  return argument;
}

Argument read_texts(const JsonFields& json) {
  Argument argument{.kind = Kind::texts};
  for (const JsonFields& each : json.elements()) argument.texts.push_back(each.text());
  return argument;
}

Argument read_text(const JsonFields& json) {
  Argument argument{.kind = Kind::text};
  argument.text = json.text();
  return argument;
}

Argument read_op(const JsonFields& json) {
  Argument argument{.kind = Kind::op};
  argument.text = json.text();
  return argument;
}

Argument read_real(const JsonFields& json) {
  Argument argument{.kind = Kind::real};
  argument.real = json.real();
  return argument;
}

Argument read_subgraph(const JsonFields& json) {
  json.require_known({"name", "graph"});
  Argument argument{.kind = Kind::graph};
  argument.text = json.at("name").text();
  argument.graph = std::make_shared<const GraphPart>(read_graph(json.at("graph")));
  return argument;
}

Argument read_optional_value(const JsonFields& json) {
  const auto [kind, value] = json.kind();
  return kind == "as_tensor" ? of_value(read_name(value)) : Argument{};
}

struct Reader {
  std::string_view kind;
  Argument (*read)(const JsonFields& json);
};

constexpr Reader readers[] = {
    {"as_none", [](const JsonFields&) { return Argument{}; }},
    {"as_tensor", [](const JsonFields& json) { return of_value(read_name(json)); }},
    {"as_tensors", read_values},
    {"as_optional_tensor", read_optional_value},
    {"as_optional_tensors", read_optional_values},
    {"as_int", [](const JsonFields& json) { return of_integer(json.integer()); }},
    {"as_ints", [](const JsonFields& json) { return read_integers(json, Kind::integers); }},
    {"as_bool", [](const JsonFields& json) { return of_integer(json.boolean() ? 1 : 0, Kind::boolean); }},
    {"as_bools", [](const JsonFields& json) { return read_integers(json, Kind::booleans); }},
    {"as_float", read_real},
    {"as_floats", read_reals},
    {"as_string", read_text},
    {"as_strings", read_texts},
    {"as_sym_int", read_symbolic},
    {"as_sym_bool", read_symbolic},
    {"as_sym_float", read_symbolic},
    {"as_sym_ints", read_sizes},
    {"as_scalar_type", [](const JsonFields& json) { return of_integer(json.integer(), Kind::dtype); }},
    {"as_layout", [](const JsonFields& json) { return of_integer(json.integer(), Kind::layout); }},
    {"as_memory_format", [](const JsonFields&) { return Argument{.kind = Kind::harmless}; }},
    {"as_device", [](const JsonFields&) { return Argument{.kind = Kind::harmless}; }},
    {"as_graph", read_subgraph},
    {"as_operator", read_op},
};

SizeText read_size(const JsonFields& json) {
  const auto [kind, value] = json.kind();
  if (kind == "as_int") return value.integer();
  if (kind != "as_expr") json.fail("has an unknown kind");
  value.require_known({"expr_str", "hint"});
  return value.at("expr_str").text();
}

std::vector<SizeText> read_size_list(const JsonFields& json) {
  std::vector<SizeText> all;
  for (const JsonFields& each : json.elements()) all.push_back(read_size(each));
  return all;
}

/// Returns the path of the innermost module of a node: the last of "key,path,type;key,path,type". Types have commas.
std::string module_of(std::string_view stack) {
  const std::string_view last = stack.substr(stack.rfind(';') + 1);
  const std::size_t start = last.find(',');
  if (start == std::string_view::npos) return "";
  const std::size_t end = last.find(',', start + 1);
  return std::string(last.substr(start + 1, end == std::string_view::npos ? end : end - start - 1));
}

/// Arguments of control flow have no names in the file: those of torch's functions, in order.
constexpr std::pair<std::string_view, std::array<std::string_view, 4>> control_flow[] = {
    {"torch.ops.higher_order.cond", {"pred", "true_fn", "false_fn", "operands"}},
    {"torch.ops.higher_order.map_impl", {"f", "xs", "pos_args"}},
    {"torch.ops.higher_order.scan", {"combine_fn", "init", "xs", "additional_inputs"}},
    {"torch.ops.higher_order.while_loop", {"cond_fn", "body_fn", "carried_inputs", "additional_inputs"}},
};

void name_arguments(NodePart& node) {
  for (const auto& [target, names] : control_flow)
    if (node.target == target)
      for (std::size_t i = 0; i < std::min(node.arguments.size(), names.size()); ++i)
        if (node.arguments[i].name.empty()) node.arguments[i].name = names[i];
}

NodePart read_node(const JsonFields& json) {
  json.require_known({"target", "inputs", "outputs", "metadata", "is_hop_single_tensor_return", "name"});
  NodePart node;
  node.target = json.at("target").text();
  for (const JsonFields& input : json.at("inputs").elements()) {
    input.require_known({"name", "arg", "kind"});
    node.arguments.push_back({input.at("name").text(), read_argument(input.at("arg"))});
  }
  name_arguments(node);
  for (const JsonFields& output : json.at("outputs").elements()) node.results.push_back(read_argument(output));
  // The metadata are texts about the Python code.
  const JsonFields metadata = json.at("metadata");
  if (metadata.has("nn_module_stack")) node.module = module_of(metadata.at("nn_module_stack").text());
  if (json.has("name")) node.name = json.at("name").text();
  if (node.name.empty()) node.name = node.results.empty() ? node.target : node.results[0].text;
  return node;
}

}  // namespace

std::string read_name(const JsonFields& json) {
  json.require_known({"name"});
  return json.at("name").text();
}

Argument read_argument(const JsonFields& json) {
  const auto [kind, value] = json.kind();
  for (const Reader& reader : readers)
    if (reader.kind == kind) return reader.read(value);
  Argument argument{.kind = Kind::other};
  argument.text = kind;
  return argument;
}

TensorMeta read_tensor_meta(const JsonFields& json) {
  json.require_known({"dtype", "sizes", "requires_grad", "device", "strides", "storage_offset", "layout"});
  TensorMeta meta;
  meta.dtype = json.at("dtype").integer();
  meta.layout = json.at("layout").integer();
  meta.sizes = read_size_list(json.at("sizes"));
  meta.strides = read_size_list(json.at("strides"));
  meta.offset = read_size(json.at("storage_offset"));
  meta.requires_grad = json.at("requires_grad").boolean();
  return meta;
}

GraphPart read_graph(const JsonFields& json) {
  // Symbolic numbers are computed from their nodes.
  json.require_known({"inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values",
                      "is_single_tensor_return", "custom_obj_values", "sym_float_values"});
  GraphPart graph;
  for (const JsonFields& input : json.at("inputs").elements()) graph.inputs.push_back(read_argument(input));
  for (const JsonFields& output : json.at("outputs").elements()) graph.outputs.push_back(read_argument(output));
  for (const JsonFields& node : json.at("nodes").elements()) graph.nodes.push_back(read_node(node));
  for (const auto& [name, meta] : json.at("tensor_values").members()) graph.tensors[name] = read_tensor_meta(meta);
  return graph;
}

}  // namespace lathe::pt2
