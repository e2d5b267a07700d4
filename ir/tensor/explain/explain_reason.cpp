#include <fmt/core.h>

#include <algorithm>

#include "ir/tensor/constants.h"
#include "ir/tensor/explain/explain.h"
#include "ir/tensor/explain/explain_detail.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

using namespace detail;

namespace {

std::string reduce_text(const Graph& graph, const Node& node) {
  const Shape& from = graph[node.operands[0]].type.shape;
  std::vector<std::string> gone;
  for (const std::int64_t dim : node.attrs.get<std::vector<std::int64_t>>("dims"))
    gone.push_back(from[static_cast<int>(dim < 0 ? dim + from.rank() : dim)].to_string());
  if (gone.empty()) return "reduces no dim";
  const auto* keep = node.attrs.find("keepdim");
  const bool kept = keep && std::get<bool>(*keep);
  return fmt::format("{} over {}, {}", node.op->name.value, listed(gone), kept ? "kept with size 1" : "removed");
}

/// Describes a contraction by its dims: "sums over k=64; batch dims B and h=8; m from the left, n from the right".
std::string product_text(const std::vector<std::string>& summed, const std::vector<std::string>& batch,
                         const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::vector<std::string> parts;
  parts.push_back(summed.empty() ? std::string("outer product, no sum") : "sums over " + listed(summed));
  if (!batch.empty()) parts.push_back((batch.size() == 1 ? "batch dim " : "batch dims ") + listed(batch));
  std::vector<std::string> free;
  if (!left.empty()) free.push_back(listed(left) + " from the left");
  if (!right.empty()) free.push_back(listed(right) + " from the right");
  if (!free.empty()) parts.push_back(joined(free, ", "));
  return joined(parts, "; ");
}

std::string contraction_text(const Graph& graph, const Node& node, const ContractionRoles& roles) {
  const auto dims = [&](std::size_t operand, const std::string& labels, const std::string& which) {
    std::vector<std::string> texts;
    const Shape& shape = graph[node.operands[operand]].type.shape;
    for (const char label : which) texts.push_back(shape[static_cast<int>(labels.find(label))].to_string());
    return texts;
  };
  return product_text(dims(0, roles.lhs, roles.contracted()), dims(0, roles.lhs, roles.batch()),
                      dims(0, roles.lhs, roles.lhs_free()), dims(1, roles.rhs, roles.rhs_free()));
}

std::string matmul_text(const Graph& graph, const Node& node) {
  const Shape &a = graph[node.operands[0]].type.shape, &b = graph[node.operands[1]].type.shape;
  const auto texts = [](const Shape& shape, int first, int last) {
    std::vector<std::string> found;
    for (int i = first; i < last; ++i) found.push_back(shape[i].to_string());
    return found;
  };
  const int batch = std::max({a.rank() - 2, b.rank() - 2, 0});
  return product_text({a[a.rank() - 1].to_string()}, texts(node.type.shape, 0, batch),
                      a.rank() > 1 ? texts(a, a.rank() - 2, a.rank() - 1) : std::vector<std::string>(),
                      b.rank() > 1 ? texts(b, b.rank() - 1, b.rank()) : std::vector<std::string>());
}

std::string linear_text(const Graph& graph, const Node& node) {
  const Shape& weight = graph[node.operands[1]].type.shape;
  return fmt::format("maps the last dim {} to {}", weight[1].to_string(), weight[0].to_string());
}

std::string elementwise_text(const Graph& graph, const Node& node) {
  std::vector<std::string> broadcast;
  for (const ValueId operand : node.operands)
    if (const Shape& shape = graph[operand].type.shape; shape != node.type.shape)
      broadcast.push_back(shape.rank() == 0 ? std::string("the scalar") : shape.to_string());
  std::string text = "elementwise";
  const DType from = graph[node.operands.back()].type.dtype;
  if (from != node.type.dtype) text += fmt::format(", {} to {}", name(from), name(node.type.dtype));
  if (!broadcast.empty()) text += "; broadcasts " + listed(broadcast);
  return text;
}

/// Returns whether `reshape` needs no copy: the shape rule of view accepts it.
bool is_view(const Graph& graph, const Node& node) {
  const Op* view = find_op("view");
  if (!view) return false;
  try {
    std::vector<DimCheck> checks;
    view->infer.value(InferContext(*view, graph, node.operands, node.attrs, node.loc, checks));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

std::string argument_text(const Node& node) {
  std::string_view what = node.op->name.value == "input"       ? "passed by the caller at each run"
                          : node.op->name.value == "parameter" ? "weights, stored between runs"
                                                               : "stored between runs";
  return std::string(what);
}

/// Returns "looks up slices of wte: [B, T] replaces vocab=256".
std::string gather_text(const Graph& graph, const Node& node) {
  const Node &table = graph[node.operands[0]], &indices = graph[node.operands[1]];
  const std::int64_t dim = node.attrs.get<std::int64_t>("dim");
  const Dim& gone = table.type.shape[static_cast<int>(dim < 0 ? dim + table.type.rank() : dim)];
  return fmt::format("looks up slices of {}: {} replaces {}", table.name.empty() ? "the table" : table.name,
                     indices.type.shape.to_string(), gone.to_string());
}

std::string concat_text(const Graph& graph, const Node& node) {
  const std::int64_t dim = node.attrs.get<std::int64_t>("dim");
  std::vector<std::string> sizes;
  for (const ValueId operand : node.operands) {
    const Shape& shape = graph[operand].type.shape;
    sizes.push_back(shape[static_cast<int>(dim < 0 ? dim + shape.rank() : dim)].to_string());
  }
  return "concatenates " + listed(sizes);
}

std::string constant_text(const Graph& graph, ValueId id) {
  const auto value = written_number(graph, id);
  if (!value) return "values given in the graph";
  const TensorType& type = graph[id].type;
  const std::string number = is_float(type.dtype) ? print_number(*value) : value->to_string();
  return type.rank() == 0 ? fmt::format("scalar {}", number) : fmt::format("filled with {}", number);
}

std::string masked_fill_text(const Graph& graph, const Node& node) {
  const Shape& mask = graph[node.operands[1]].type.shape;
  std::string text = fmt::format("{} where the mask is true", print_number(node.attrs.get<Number>("value")));
  if (mask != node.type.shape) text += fmt::format("; broadcasts the mask {}", mask.to_string());
  return text;
}

/// Returns "sums over 128 channels and a kernel of 3 x 3; 28 -> (28 + 1 + 1 - 3) / 2 + 1 = 14, ..".
std::string conv_text(const Graph& graph, const Node& node) {
  const Shape &x = graph[node.operands[0]].type.shape, &weight = graph[node.operands[1]].type.shape;
  const auto list = [&](std::string_view name) { return node.attrs.get<std::vector<std::int64_t>>(name); };
  const auto low = list("low"), high = list("high"), stride = list("stride"), dilation = list("dilation");
  std::string kernel, sizes;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const int d = static_cast<int>(i) + 2;
    kernel += (i == 0 ? "" : " x ") + weight[d].to_string();
    std::string padded = x[d].unnamed().to_string();
    for (const std::int64_t zeros : {low[i], high[i]})
      if (zeros > 0) padded += fmt::format(" + {}", zeros);
    const Dim span = Dim(dilation[i]) * (weight[d].unnamed() - Dim(1)) + Dim(1);
    const std::string steps = stride[i] == 1 ? fmt::format("{} - {}", padded, span.to_string())
                                             : fmt::format("({} - {}) / {}", padded, span.to_string(), stride[i]);
    sizes += fmt::format("; {} -> {} + 1 = {}", x[d].to_string(), steps, node.type.shape[d].to_string());
  }
  return fmt::format("sums over {} channels and a kernel of {}{}", weight[1].to_string(), kernel, sizes);
}

/// Describes composites: some by name, others by their one-line doc.
std::string composite_text(const Graph& graph, const Node& node) {
  const std::string_view name = node.op->name.value;
  if (name == "matmul") return matmul_text(graph, node);
  if (name == "linear") return linear_text(graph, node);
  if (name == "reshape")
    return regrouping_text(graph[node.operands[0]].type.shape, node.type.shape) +
           (is_view(graph, node) ? std::string(no_copy) : "; copies, because the strides allow no view");
  if (name == "masked_fill") return masked_fill_text(graph, node);
  if (name == "conv") return conv_text(graph, node);
  if (name == "gather") return gather_text(graph, node);
  if (name == "concat") return concat_text(graph, node);
  std::string text(node.op->doc.value);
  if (const Attribute* dim = node.attrs.find("dim"); dim && !node.operands.empty()) {
    const Shape& from = graph[node.operands[0]].type.shape;
    const std::int64_t axis = std::get<std::int64_t>(*dim);
    const auto at = static_cast<int>(axis < 0 ? axis + from.rank() : axis);
    if (name == "softmax" || name == "log_softmax")
      return fmt::format("normalizes along {}; same shape", from[at].to_string());
    if (at >= 0 && at < from.rank()) text = fmt::format("along {}: {}", from[at].to_string(), text);
  }
  const bool keeps = !node.operands.empty() && graph[node.operands[0]].type.shape == node.type.shape;
  return keeps ? text + "; same shape" : text;
}

/// Returns "the last value of h after T iterations of @step", or "y of all T iterations of @step, along dim 0".
std::string loop_text(const Node& node) {
  const Graph& body = loop_body(node).graph();
  const int result = loop_result(node), carries = carry_count(node);
  const std::string trips = loop_trips(node).to_string();
  if (result < carries)
    return fmt::format("the last value of {} after {} iterations of @{}",
                       body[body.arguments()[static_cast<std::size_t>(result)]].name, trips, body.name);
  return fmt::format("{} of all {} iterations of @{}, along dim 0{}",
                     body.outputs[static_cast<std::size_t>(result - carries)].name, trips, body.name,
                     loop_reverse(node) ? "; the last one runs first" : "");
}

}  // namespace

std::string shape_reason(const Graph& graph, ValueId id) {
  const Node& node = graph[id];
  if (node.op->as<Argument>()) return argument_text(node);
  if (node.op->name.value == "contiguous")
    return graph[node.operands[0]].type.is_contiguous() ? "already row-major" : "copies into row-major order";
  if (node.op->name.value == "constant") return constant_text(graph, id);
  if (const auto* view = node.op->as<View>()) return view_text(graph, node, *view);
  if (node.op->as<Reduce>()) return reduce_text(graph, node);
  if (const auto* contraction = node.op->as<Contraction>())
    return contraction_text(graph, node, contraction->roles(node));
  if (node.op->as<Elementwise>()) return elementwise_text(graph, node);
  if (is_loop(node)) return loop_text(node);
  return composite_text(graph, node);
}

}  // namespace lathe::ir
