#include <fmt/core.h>

#include <algorithm>

#include "ir/tensor/explain.h"
#include "ir/tensor/matcher.h"
#include "ir/tensor/op.h"
#include "ir/tensor/printer.h"

namespace lathe::ir {

namespace {

std::string joined(const std::vector<std::string>& items, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : std::string(between)) + items[i];
  return text;
}

/// "a, b and c"
std::string listed(std::vector<std::string> items) {
  if (items.size() < 2) return joined(items, "");
  const std::string last = std::move(items.back());
  items.pop_back();
  return joined(items, ", ") + " and " + last;
}

std::string plural(std::size_t n, std::string_view one, std::string_view many) {
  return std::string(n == 1 ? one : many);
}

// ---- a shape becomes another, in row-major order

/// A run of dims before and the run of dims after that holds the same elements.
struct Regrouping {
  std::vector<Dim> before, after;
};

/// Cuts both shapes into the shortest runs of equal products.
std::vector<Regrouping> regroup(const Shape& from, const Shape& to) {
  std::vector<Regrouping> runs;
  int i = 0, j = 0;
  while (i < from.rank() || j < to.rank()) {
    Regrouping run;
    Dim before(1), after(1);
    const auto take_before = [&] {
      before = before * from[i].unnamed();
      run.before.push_back(from[i++]);
    };
    const auto take_after = [&] {
      after = after * to[j].unnamed();
      run.after.push_back(to[j++]);
    };
    if (i < from.rank() && from[i].is(1) && (j >= to.rank() || !to[j].is(1))) {
      take_before();
    } else if (j < to.rank() && to[j].is(1) && (i >= from.rank() || !from[i].is(1))) {
      take_after();
    } else {
      if (i < from.rank()) take_before();
      if (j < to.rank()) take_after();
      while (before != after && (i < from.rank() || j < to.rank())) {
        const bool grow_after = before.divided_by(after).has_value() ? j < to.rank() : i >= from.rank();
        grow_after ? take_after() : take_before();
      }
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string product(const std::vector<Dim>& dims) {
  std::vector<std::string> texts;
  for (const Dim& dim : dims) texts.push_back(dim.to_string());
  return joined(texts, " x ");
}

std::string regrouping_text(const Shape& from, const Shape& to) {
  std::vector<std::string> parts;
  for (const Regrouping& run : regroup(from, to)) {
    const std::size_t before = run.before.size(), after = run.after.size();
    if (before == 1 && after == 1) {
      if (run.before[0].to_string() != run.after[0].to_string())
        parts.push_back(fmt::format("{} is now called {}", run.before[0].to_string(), run.after[0].to_string()));
    } else if (before == 0) {
      parts.push_back("a dim of size 1 appears");
    } else if (after == 0) {
      parts.push_back("a dim of size 1 goes");
    } else {
      const std::string_view verb = before == 1 ? "splits into" : after == 1 ? "join into" : "become";
      parts.push_back(fmt::format("{} {} {}", product(run.before), verb, product(run.after)));
    }
  }
  return parts.empty() ? "the shape stays" : joined(parts, "; ");
}

// ---- views, by where their elements come from

constexpr std::string_view no_copy = "; nothing is copied";

/// The dims that a permutation moves; empty when the map is none.
std::string permutation_text(const IndexMap& map, const Shape& from, const Shape& to) {
  if (static_cast<int>(map.components.size()) != to.rank()) return {};
  std::vector<std::string> moved;
  std::vector<bool> seen(map.components.size(), false);
  for (int i = 0; i < from.rank(); ++i) {
    const auto& c = map.components[static_cast<std::size_t>(i)];
    if (c.dim < 0 || c.scale != 1 || !c.offset.is(0) || from[i] != to[c.dim]) return {};
    if (seen[static_cast<std::size_t>(c.dim)]) return {};
    seen[static_cast<std::size_t>(c.dim)] = true;
    if (c.dim != i) moved.push_back(from[i].to_string());
  }
  if (moved.empty()) return "every dim keeps its place";
  if (moved.size() == 2) return listed(moved) + " change places";
  return fmt::format("the dims are reordered to {}", to.to_string());
}

std::string cut_text(const IndexMap& map, const Shape& from, const Shape& to) {
  std::vector<std::string> parts;
  for (int i = 0; i < from.rank(); ++i) {
    const auto& c = map.components[static_cast<std::size_t>(i)];
    const std::string dim = from[i].to_string();
    if (c.dim < 0) {
      if (!from[i].is(1)) parts.push_back(fmt::format("index {} of {} is taken", c.offset.to_string(), dim));
      continue;
    }
    const std::string kept = to[c.dim].to_string();
    if (c.scale != 1)
      parts.push_back(fmt::format("every {}. of {} from {} on gives {}", c.scale, dim, c.offset.to_string(), kept));
    else if (!c.offset.is(0) || from[i] != to[c.dim])
      parts.push_back(fmt::format("{} of {} are kept, from index {} on", kept, dim, c.offset.to_string()));
  }
  return joined(parts, "; ");
}

std::string stretch_text(const IndexMap& map, const Shape& to) {
  std::vector<std::string> stretched;
  for (int d = 0; d < to.rank(); ++d) {
    const bool read = std::any_of(map.components.begin(), map.components.end(),
                                  [&](const IndexMap::Component& c) { return c.dim == d; });
    if (!read && !to[d].is(1)) stretched.push_back(to[d].to_string());
  }
  return stretched.empty() ? std::string() : fmt::format("repeated along {}, with stride 0", listed(stretched));
}

std::string view_text(const Graph& graph, const Node& node, const View& view) {
  const Shape &from = graph[node.operands[0]].type.shape, &to = node.type.shape;
  const IndexMap map = view.map(graph, node);
  if (map.reshape || map.components.size() != static_cast<std::size_t>(from.rank()))
    return regrouping_text(from, to) + std::string(no_copy);
  if (const std::string moved = permutation_text(map, from, to); !moved.empty()) return moved + std::string(no_copy);
  std::vector<std::string> parts;
  for (std::string part : {cut_text(map, from, to), stretch_text(map, to)})
    if (!part.empty()) parts.push_back(std::move(part));
  if (parts.empty()) parts.push_back(regrouping_text(from, to));
  return joined(parts, "; ") + std::string(no_copy);
}

// ---- the rest

std::string reduce_text(const Graph& graph, const Node& node) {
  const Shape& from = graph[node.operands[0]].type.shape;
  std::vector<std::string> gone;
  for (const std::int64_t dim : node.attrs.get<std::vector<std::int64_t>>("dims"))
    gone.push_back(from[static_cast<int>(dim < 0 ? dim + from.rank() : dim)].to_string());
  if (gone.empty()) return "no dim is folded";
  const auto* keep = node.attrs.find("keepdim");
  const bool kept = keep && std::get<bool>(*keep);
  return fmt::format(
      "the {} over {}, which {}", node.op->name.value, listed(gone),
      kept ? plural(gone.size(), "stays with size 1", "stay with size 1") : plural(gone.size(), "goes", "go"));
}

/// "A k=64 is summed over; B and h=8 run along; m from the first operand, n from the second": dims by name.
std::string product_text(const std::vector<std::string>& summed, const std::vector<std::string>& batch,
                         const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::vector<std::string> parts;
  parts.push_back(summed.empty() ? std::string("nothing is summed over")
                                 : listed(summed) + plural(summed.size(), " is", " are") + " summed over");
  if (!batch.empty()) parts.push_back(listed(batch) + plural(batch.size(), " runs", " run") + " along");
  std::vector<std::string> free;
  if (!left.empty()) free.push_back(listed(left) + " from the first");
  if (!right.empty()) free.push_back(listed(right) + " from the second");
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
  return fmt::format("each row of {} numbers becomes {} numbers", weight[1].to_string(), weight[0].to_string());
}

std::string elementwise_text(const Graph& graph, const Node& node) {
  std::vector<std::string> stretched;
  for (const ValueId operand : node.operands)
    if (const Shape& shape = graph[operand].type.shape; shape != node.type.shape)
      stretched.push_back(shape.rank() == 0 ? std::string("the scalar") : shape.to_string());
  std::string text = "element by element";
  const DType from = graph[node.operands.back()].type.dtype;
  if (from != node.type.dtype)
    text = fmt::format("{} becomes {}, element by element", name(from), name(node.type.dtype));
  if (!stretched.empty())
    text += "; " + listed(stretched) + plural(stretched.size(), " is", " are") + " stretched to fit";
  return text;
}

/// Whether `reshape` shows its operand's elements in place: where the rule of view would take it.
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
  std::string_view what = node.op->name.value == "input"       ? "given by the caller at each run"
                          : node.op->name.value == "parameter" ? "learned, kept between runs"
                                                               : "kept between runs";
  return std::string(what);
}

/// "each index picks a slice of wte: vocab=256 gives way to [B, T]"
std::string gather_text(const Graph& graph, const Node& node) {
  const Node &table = graph[node.operands[0]], &indices = graph[node.operands[1]];
  const std::int64_t dim = node.attrs.get<std::int64_t>("dim");
  const Dim& gone = table.type.shape[static_cast<int>(dim < 0 ? dim + table.type.rank() : dim)];
  return fmt::format("each index picks a slice of {}: {} gives way to {}",
                     table.name.empty() ? "the table" : table.name, gone.to_string(), indices.type.shape.to_string());
}

std::string concat_text(const Graph& graph, const Node& node) {
  const std::int64_t dim = node.attrs.get<std::int64_t>("dim");
  std::vector<std::string> sizes;
  for (const ValueId operand : node.operands) {
    const Shape& shape = graph[operand].type.shape;
    sizes.push_back(shape[static_cast<int>(dim < 0 ? dim + shape.rank() : dim)].to_string());
  }
  return joined(sizes, " and ") + " stand one after the other";
}

std::string constant_text(const Graph& graph, ValueId id) {
  const auto value = uniform_value(graph, id);
  if (!value) return "numbers written in the graph";
  const TensorType& type = graph[id].type;
  const std::string number = is_float(type.dtype) ? print_real(*value) : fmt::format("{}", *value);
  return type.rank() == 0 ? fmt::format("the number {}", number) : fmt::format("{} everywhere", number);
}

std::string masked_fill_text(const Graph& graph, const Node& node) {
  const Shape& mask = graph[node.operands[1]].type.shape;
  std::string text = fmt::format("{} where the mask is true", print_real(node.attrs.get<double>("value")));
  if (mask != node.type.shape) text += fmt::format("; the mask {} is stretched to fit", mask.to_string());
  return text;
}

/// Composites: by name where the shape has a story of its own, else by their one-line doc.
std::string composite_text(const Graph& graph, const Node& node) {
  const std::string_view name = node.op->name.value;
  if (name == "matmul") return matmul_text(graph, node);
  if (name == "linear") return linear_text(graph, node);
  if (name == "reshape")
    return regrouping_text(graph[node.operands[0]].type.shape, node.type.shape) +
           (is_view(graph, node) ? std::string(no_copy) : "; the strides demand a copy");
  if (name == "masked_fill") return masked_fill_text(graph, node);
  if (name == "gather") return gather_text(graph, node);
  if (name == "concat") return concat_text(graph, node);
  std::string text(node.op->doc.value);
  if (const Attribute* dim = node.attrs.find("dim"); dim && !node.operands.empty()) {
    const Shape& from = graph[node.operands[0]].type.shape;
    const std::int64_t axis = std::get<std::int64_t>(*dim);
    const auto at = static_cast<int>(axis < 0 ? axis + from.rank() : axis);
    if (name == "softmax" || name == "log_softmax")
      return fmt::format("normalised along {}; the shape stays", from[at].to_string());
    if (at >= 0 && at < from.rank()) text = fmt::format("along {}: {}", from[at].to_string(), text);
  }
  const bool keeps = !node.operands.empty() && graph[node.operands[0]].type.shape == node.type.shape;
  return keeps ? text + "; the shape stays" : text;
}

}  // namespace

std::string shape_reason(const Graph& graph, ValueId id) {
  const Node& node = graph[id];
  if (node.op->as<Argument>()) return argument_text(node);
  if (node.op->name.value == "contiguous")
    return graph[node.operands[0]].type.is_contiguous() ? "row-major already" : "copied into row-major order";
  if (node.op->name.value == "constant") return constant_text(graph, id);
  if (const auto* view = node.op->as<View>()) return view_text(graph, node, *view);
  if (node.op->as<Reduce>()) return reduce_text(graph, node);
  if (const auto* contraction = node.op->as<Contraction>())
    return contraction_text(graph, node, contraction->roles(node));
  if (node.op->as<Elementwise>()) return elementwise_text(graph, node);
  return composite_text(graph, node);
}

}  // namespace lathe::ir
