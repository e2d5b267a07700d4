#include "passes/transforms/dtypes/decompose_complex.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/ops/rules/view_rules.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

bool touches_complex(const Graph& graph, const Node& node) {
  return is_complex(node.type.dtype) || std::any_of(node.operands.begin(), node.operands.end(),
                                                    [&](ValueId id) { return is_complex(graph[id].type.dtype); });
}

/// Expands composites over complex values until none is left.
Graph expand_complex(Graph graph) {
  const auto expandable = [&](const Node& node) { return node.op->as<Composite>() && touches_complex(graph, node); };
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(), expandable)) {
    GraphBuilder builder(graph.name);
    Rebuilder to(builder, graph);
    for (const ValueId id : all_values(graph)) {
      const Node& node = graph[id];
      if (!expandable(node)) {
        to.set(id, to.copy(node));
        continue;
      }
      const GraphBuilder::At at(builder, node.loc);
      const auto operands = to.operands(node);
      to.set(id, node.op->as<Composite>()->expand(builder, node, operands));
    }
    to.close();
    graph = dce(builder.finish());
  }
  return graph;
}

Shape with_pair(Shape shape) {
  shape.push_back(2);
  return shape;
}

/// Returns part 0 (real) or 1 (imaginary) of a pair, with a last dim of size 1, which broadcasts against pairs.
Value part(const Value& pair, int which) { return slice(pair, -1, which, which + 1); }

/// (a + bi)(c + di) = (ac - bd) + (ad + bc)i, as one elementwise expression over pairs.
Value multiply(const Value& x, const Value& y) {
  const Value a = part(x, 0), b = part(x, 1), c = part(y, 0), d = part(y, 1);  // [.., 1]
  const Value ac = mul(a, c), bd = mul(b, d), ad = mul(a, d), bc = mul(b, c);
  const Value real = sub(ac, bd), imaginary = add(ad, bc);
  const Value is_real = eq(iota(x.builder(), {2}, 0, i32), 0.0);
  return where(is_real, real, imaginary);
}

/// Compares both parts: `eq` if both are equal, `ne` if either differs. [.., 2] -> [..]
Value compare(const Op& op, const Value& x, const Value& y) {
  GraphBuilder& builder = x.builder();
  const Value first = builder.add(op, {part(x, 0), part(y, 0)}), second = builder.add(op, {part(x, 1), part(y, 1)});
  return squeeze(&op == &ops::eq ? logical_and(first, second) : logical_or(first, second), -1);
}

class Decomposer {
 public:
  Decomposer(GraphBuilder& builder, const Graph& graph) : to_(builder, graph), graph_(graph) {}

  void run() {
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const GraphBuilder::At at(to_.builder(), node.loc);
      to_.set(id, touches_complex(graph_, node) ? pair_of(node) : to_.copy(node));
    }
    to_.close();
  }

 private:
  Value pair_of(const Node& node) {
    const Op* op = node.op;
    GraphBuilder& builder = to_.builder();
    if (op->as<Argument>())
      return builder.argument(*op, node.name, real_part(node.type.dtype), with_pair(node.type.shape));
    const auto operands = to_.operands(node);
    if (op == &ops::view_as_complex || op == &ops::view_as_real) return operands[0];
    if (op == &ops::mul) return multiply(operands[0], operands[1]);
    if (op == &ops::eq || op == &ops::ne) return compare(*op, operands[0], operands[1]);
    if (op == &ops::where) return where(unsqueeze(operands[0], -1), operands[1], operands[2]);
    if (op == &ops::cast) return cast(operands[0], real_part(node.type.dtype));
    if (op == &ops::constant) return constant_pair(node);
    if (op == &ops::add || op == &ops::sub || op == &ops::neg || op == &ops::contiguous)
      return builder.add(*op, operands);
    return along_pairs(node, operands);
  }

  Value constant_pair(const Node& node) {
    auto values = node.attrs.get<NumberList>("values");
    if (values.size() == 1) values.push_back(0);
    const DType dtype = real_part(node.type.dtype);
    if (values.size() > 2) return literal(to_.builder(), with_pair(node.type.shape), std::move(values), dtype);
    return expand(literal(to_.builder(), {2}, std::move(values), dtype), with_pair(node.type.shape));
  }

  /// Ops that move or sum elements: the same op, with dims counted from the front, so that the last dim is kept.
  Value along_pairs(const Node& node, std::span<const Value> operands) {
    const Op* op = node.op;
    Attributes attrs = node.attrs;
    for (const auto& [name, value] : node.attrs.entries()) {
      if (const auto* shape = std::get_if<Shape>(&value); shape) attrs.set(name, with_pair(*shape));
      const auto* dim = std::get_if<std::int64_t>(&value);
      if (dim && name.starts_with("dim")) attrs.set(name, from_front(node, *dim));
    }
    if (op == &ops::permute || op == &ops::sum) attrs.set("dims", dims_from_front(node));
    if (op == &ops::view && !rules::view_strides(operands[0].type(), attrs.get<Shape>("shape"))) {
      const Value copied = contiguous(operands[0]);
      return to_.builder().add(*op, {copied}, std::move(attrs));
    }
    const Value result = to_.builder().add(*op, operands, std::move(attrs));
    // The diagonal comes last: [.., 2, n] -> [.., n, 2].
    return op == &ops::diagonal ? transpose(result, -1, -2) : result;
  }

  /// Returns a dim of the complex value as a dim of the pair. For unsqueeze and scatter_add it is a dim of the
  /// result.
  std::int64_t from_front(const Node& node, std::int64_t dim) const {
    const bool of_result = node.op == &ops::unsqueeze || node.op == &ops::scatter_add;
    const int rank = of_result ? node.type.rank() : graph_[node.operands[0]].type.rank();
    return rules::normalize_axis(dim, rank);
  }

  std::vector<std::int64_t> dims_from_front(const Node& node) const {
    std::vector<std::int64_t> dims;
    for (const std::int64_t dim : node.attrs.get<std::vector<std::int64_t>>("dims"))
      dims.push_back(from_front(node, dim));
    if (node.op == &ops::permute) dims.push_back(node.type.rank());
    return dims;
  }

  Rebuilder to_;
  const Graph& graph_;
};

}  // namespace

Graph decompose_complex(Graph graph) {
  const auto complex = [&](const Node& node) { return is_complex(node.type.dtype); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), complex)) return graph;
  const Graph primitive = expand_complex(std::move(graph));
  GraphBuilder builder(primitive.name);
  Decomposer(builder, primitive).run();
  return dce(builder.finish());
}

}  // namespace lathe::ir
