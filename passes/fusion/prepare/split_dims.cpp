#include "passes/fusion/prepare/split_dims.h"

#include <algorithm>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/prepare/dim_labels.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe {

using namespace ir;

namespace {

using DimParts = std::vector<std::vector<Dim>>;  ///< by dim: the dims whose product it is

Shape joined(const DimParts& parts) {
  std::vector<Dim> dims;
  for (const auto& part : parts) dims.insert(dims.end(), part.begin(), part.end());
  return Shape(std::move(dims));
}

std::vector<Dim> ones(std::size_t count) { return std::vector<Dim>(count, Dim(1)); }

/// Returns the parts of an operand that is broadcast to a result: aligned from the last dim, with a 1 for each part
/// of a stretched dim.
DimParts broadcast_parts(const Shape& operand, const Shape& result, const DimParts& parts) {
  DimParts found;
  const int lead = result.rank() - operand.rank();
  for (int i = 0; i < operand.rank(); ++i) {
    const auto& part = parts[i + lead];
    found.push_back(operand[i].is(1) && !result[i + lead].is(1) ? ones(part.size()) : part);
  }
  return found;
}

class NodeSplitter {
 public:
  NodeSplitter(const Graph& graph, const Node& node, const Shape& split, DimParts parts, const WantedShape& wanted)
      : graph_(graph), node_(node), split_(split), parts_(std::move(parts)), wanted_(wanted) {}

  std::optional<SplitNode> run() const {
    SplitNode same{node_.op, node_.attrs, {}};
    if (node_.op->as<Contraction>()) return product();
    if (node_.op->as<Reduce>()) return reduction();
    if (node_.op->as<Elementwise>() || node_.op == &ops::contiguous || node_.op == &ops::expand) {
      for (const ValueId operand : node_.operands)
        same.operands.push_back(joined(broadcast_parts(shape_of(operand), node_.type.shape, parts_)));
      if (node_.op == &ops::expand) same.attrs.set("shape", split_);
      return same;
    }
    if (node_.op == &ops::random_uniform) {  // draws are numbered in row-major order
      same.operands.push_back(shape_of(node_.operands[0]));
      same.attrs.set("shape", split_);
      return same;
    }
    if (const auto order = canonical::permutation(node_)) return permuted(*order);
    if (canonical::keeps_order(*node_.op) && same_but_for_ones(shape_of(node_.operands[0]), node_.type.shape))
      return SplitNode{nullptr, {}, {without_ones(shape_of(node_.operands[0]))}};
    return std::nullopt;
  }

 private:
  const Shape& shape_of(ValueId id) const { return graph_[id].type.shape; }

  /// Returns the shape of the operand of a view that adds or drops dims of size 1.
  Shape without_ones(const Shape& operand) const {
    DimParts found;
    std::size_t next = 0;
    for (const Dim& dim : operand) {
      while (!dim.is(1) && node_.type.shape[static_cast<int>(next)].is(1)) ++next;
      found.push_back(dim.is(1) ? ones(1) : parts_[next++]);
    }
    return joined(found);
  }

  SplitNode permuted(const std::vector<int>& order) const {
    std::vector<std::size_t> starts = {0};
    DimParts before(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) before[order[i]] = parts_[i];
    for (const auto& part : before) starts.push_back(starts.back() + part.size());
    std::vector<std::int64_t> dims;
    for (const int d : order)
      for (std::size_t n = 0; n < before[d].size(); ++n) dims.push_back(static_cast<std::int64_t>(starts[d] + n));
    return {&ops::permute, {{"dims", std::move(dims)}}, {joined(before)}};
  }

  SplitNode reduction() const {
    const Shape& operand = shape_of(node_.operands[0]);
    const std::vector<int> folded = reduced_dims(graph_, node_);
    const Shape* wanted = wanted_(node_.operands[0]);
    const std::optional<DimParts> known = wanted ? split_parts(operand, *wanted) : std::nullopt;
    DimParts found;
    std::vector<std::int64_t> dims;
    std::size_t next = 0, at = 0;
    for (int d = 0; d < operand.rank(); ++d) {
      const bool is_folded = std::find(folded.begin(), folded.end(), d) != folded.end();
      if (!is_folded)
        found.push_back(parts_[next]);
      else
        found.push_back(known ? (*known)[d] : std::vector<Dim>{operand[d]});
      for (std::size_t n = 0; n < found.back().size(); ++n, ++at)
        if (is_folded) dims.push_back(static_cast<std::int64_t>(at));
      if (!is_folded || node_.attrs.get<bool>("keepdim")) ++next;
    }
    return {node_.op, {{"dims", std::move(dims)}, {"keepdim", false}}, {joined(found)}};
  }

  std::optional<SplitNode> product() const {
    ContractionRoles roles = node_.op->as<Contraction>()->roles(node_);
    Shape left = shape_of(node_.operands[0]), right = shape_of(node_.operands[1]);
    const std::string before = roles.out;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto has = [&](const std::string& labels) { return labels.find(before[i]) != std::string::npos; };
      if (parts_[i].size() == 1) continue;
      if (!has(roles.lhs) || !has(roles.rhs)) return std::nullopt;
      std::string labels(1, before[i]);
      for (char c = 'A'; labels.size() < parts_[i].size() && c <= 'z'; c = c == 'Z' ? 'a' : static_cast<char>(c + 1))
        if ((roles.lhs + roles.rhs + roles.out + labels).find(c) == std::string::npos) labels += c;
      if (labels.size() < parts_[i].size()) return std::nullopt;
      spread(roles.out, before[i], labels, nullptr, parts_[i]);
      spread(roles.lhs, before[i], labels, &left, parts_[i]);
      spread(roles.rhs, before[i], labels, &right, parts_[i]);
    }
    return SplitNode{node_.op, {{"spec", roles.lhs + "," + roles.rhs + "->" + roles.out}}, {left, right}};
  }

  /// Replaces a label by `labels`, and inserts their dims into the shape.
  static void spread(std::string& spec, char label, const std::string& labels, Shape* shape,
                     const std::vector<Dim>& dims) {
    const std::size_t at = spec.find(label);
    spec.replace(at, 1, labels);
    if (!shape) return;
    std::vector<Dim> now(shape->begin(), shape->end());
    now.erase(now.begin() + static_cast<std::ptrdiff_t>(at));
    now.insert(now.begin() + static_cast<std::ptrdiff_t>(at), dims.begin(), dims.end());
    *shape = Shape(now);
  }

  const Graph& graph_;
  const Node& node_;
  const Shape& split_;
  DimParts parts_;
  const WantedShape& wanted_;
};

/// Returns, by dim of a node's result, the dim of the operand that it runs along, or -1. Returns nothing for nodes
/// that reshape a dim in `split`, and for matmuls that sum over it.
std::optional<std::vector<int>> dims_along(const Graph& graph, const Node& node, int operand,
                                           const std::vector<bool>& split) {
  const Shape& from = graph[node.operands[operand]].type.shape;
  std::vector<int> along(static_cast<std::size_t>(node.type.rank()), -1);
  std::vector<bool> used(static_cast<std::size_t>(from.rank()), false);
  const auto run = [&](std::size_t result, int d) {
    along[result] = d;
    used[d] = true;
  };
  if (canonical::keeps_order(*node.op)) {
    if (!same_but_for_ones(from, node.type.shape)) return std::nullopt;
    int d = 0;
    for (std::size_t i = 0; i < along.size(); ++i) {
      if (node.type.shape[static_cast<int>(i)].is(1)) continue;
      while (from[d].is(1)) ++d;
      run(i, d++);
    }
  } else if (const auto labels = dim_labels(graph, node)) {
    const std::vector<int>& own = labels->operands[operand];
    for (std::size_t i = 0; i < along.size(); ++i) {
      const auto at = std::find(own.begin(), own.end(), labels->result[i]);
      if (labels->result[i] >= 0 && labels->result[i] != labels->cut && at != own.end())
        run(i, static_cast<int>(at - own.begin()));
    }
  }
  for (std::size_t d = 0; d < used.size(); ++d)
    if (split[d] && !used[d] && !node.op->as<Reduce>()) return std::nullopt;
  return along;
}

}  // namespace

std::optional<Shape> split_result(const Graph& graph, const Node& node, int operand, const Shape& split) {
  const auto parts = split_parts(graph[node.operands[operand]].type.shape, split);
  if (!parts) return std::nullopt;
  std::vector<bool> is_split;
  for (const auto& part : *parts) is_split.push_back(part.size() > 1);
  const auto along = dims_along(graph, node, operand, is_split);
  if (!along) return std::nullopt;
  DimParts found;
  for (std::size_t i = 0; i < along->size(); ++i)
    found.push_back((*along)[i] < 0 ? std::vector<Dim>{node.type.shape[static_cast<int>(i)]} : (*parts)[(*along)[i]]);
  return joined(found);
}

std::optional<std::vector<std::vector<Dim>>> split_parts(const Shape& whole, const Shape& split) {
  DimParts parts;
  int next = 0;
  for (const Dim& dim : whole) {
    Dim product(1);
    parts.emplace_back();
    do {
      if (next == split.rank()) return std::nullopt;
      parts.back().push_back(split[next]);
      product = product * split[next++].unnamed();
    } while (product != dim);
  }
  if (next != split.rank()) return std::nullopt;
  return parts;
}

bool same_but_for_ones(const Shape& a, const Shape& b) {
  const auto rest = [](const Shape& shape) {
    std::vector<Dim> dims;
    for (const Dim& dim : shape)
      if (!dim.is(1)) dims.push_back(dim);
    return Shape(std::move(dims));
  };
  return rest(a) == rest(b);
}

Value with_ones(Value value, const Shape& shape) {
  for (int i = 0; i < std::max(value.rank(), shape.rank());) {
    if (i < value.rank() && i < shape.rank() && value.shape()[i] == shape[i])
      ++i;
    else
      value = i < value.rank() && value.shape()[i].is(1) ? squeeze(value, i) : unsqueeze(value, i);
  }
  return value;
}

std::optional<SplitNode> split_node(const Graph& graph, const Node& node, const Shape& split,
                                    const WantedShape& wanted) {
  auto parts = split_parts(node.type.shape, split);
  if (!parts) return std::nullopt;
  return NodeSplitter(graph, node, split, std::move(*parts), wanted).run();
}

}  // namespace lathe
