#include "passes/transforms/sizes/flat_collectives.h"

#include <algorithm>

#include "ir/ops/collectives.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/rules/operand_rules.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

/// Returns the elements of `a` in row-major order as a tensor of this shape.
Value laid_out_as(const Value& a, const Shape& shape) {
  return a.shape().looks_like(shape) ? a : view(contiguous(a), shape);
}

/// Rewrites a collective with new operands.
class FlatCollective {
 public:
  FlatCollective(const Node& node, const Value& operand) : node_(node), operand_(operand), axis_(axis_of(node)) {}

  Value run() const {
    if (axis_.ranks == 1) return laid_out_as(operand_, node_.type.shape);
    switch (collective_kind(*node_.op)) {
      case CollectiveKind::all_gather: return gathered();
      case CollectiveKind::reduce_scatter: return scattered();
      case CollectiveKind::all_to_all: return transposed();
      case CollectiveKind::all_reduce: return apply(*node_.op, {contiguous(operand_)}, node_.attrs);
      case CollectiveKind::send_recv:
        if (places_on(node_) == 0) return laid_out_as(operand_, node_.type.shape);
        return apply(*node_.op, {contiguous(operand_)}, node_.attrs);
    }
    throw InternalError("a collective of no kind");
  }

 private:
  int dim(std::string_view attr) const {
    return rules::normalize_axis(node_.attrs.get<std::int64_t>(attr), operand_.rank());
  }
  Dim ranks() const { return Dim(axis_.ranks); }

  /// Gathers [n] elements of each process: [ranks, n].
  Value gather_flat(const Value& own) const {
    const bool again = node_.attrs.get<bool>("again");
    return all_gather(laid_out_as(own, {Dim(1), own.shape().numel()}), axis_, 0, Dim(1), again);
  }

  /// `parts`: [ranks, operand's dims]. The ranks become the second of three parts of dim d: (outer, ranks, rest).
  Value joined(const Value& parts, const Shape& each, int d, const Dim& outer) const {
    Shape shape{ranks()};
    std::vector<std::int64_t> order;
    for (int i = 0; i < each.rank(); ++i) {
      if (i != d) {
        order.push_back(shape.rank());
        shape.push_back(each[i].unnamed());
        continue;
      }
      order.insert(order.end(), {shape.rank(), 0, shape.rank() + 1});
      shape.push_back(outer);
      shape.push_back(*each[d].unnamed().divided_by(outer));
    }
    return laid_out_as(permute(laid_out_as(parts, shape), order), node_.type.shape);
  }

  /// Returns the elements for each process, [ranks, n], of a value whose dim d is (outer, ranks, rest).
  Value parted(int d, const Dim& outer) const {
    const Shape& whole = operand_.shape();
    Shape shape;
    std::vector<std::int64_t> order{0};
    for (int i = 0; i < whole.rank(); ++i) {
      if (i != d) {
        order.push_back(shape.rank());
        shape.push_back(whole[i].unnamed());
        continue;
      }
      order[0] = shape.rank() + 1;
      order.insert(order.end(), {shape.rank(), shape.rank() + 2});
      for (const Dim& size : {outer, ranks(), *whole[d].unnamed().divided_by(outer * ranks())}) shape.push_back(size);
    }
    const Value parts = permute(laid_out_as(operand_, shape), order);
    return laid_out_as(parts, {ranks(), *whole.numel().unnamed().divided_by(ranks())});
  }

  Value gathered() const {
    // Shards along the first dim follow each other already. An updated parameter is therefore gathered in place.
    if (dim("dim") == 0 && node_.attrs.get<Dim>("outer").is(1))
      return apply(*node_.op, {contiguous(operand_)}, node_.attrs);
    return joined(gather_flat(operand_), operand_.shape(), dim("dim"), node_.attrs.get<Dim>("outer").unnamed());
  }

  Value scattered() const {
    const Value parts = parted(dim("dim"), node_.attrs.get<Dim>("outer").unnamed());
    return laid_out_as(reduce_scatter(parts, axis_, 0), node_.type.shape);
  }

  Value transposed() const {
    const int from = dim("split_dim"), to = dim("concat_dim");
    const Value parts = parted(from, Dim(1));
    Attributes attrs = node_.attrs;
    attrs.set("split_dim", std::int64_t{0});
    attrs.set("concat_dim", std::int64_t{1});
    const Value exchanged = apply(ops::all_to_all, {parts}, std::move(attrs));
    Shape each = operand_.shape();
    each.set(from, *each[from].unnamed().divided_by(ranks()));
    return joined(exchanged, each, to, Dim(1));
  }

  const Node& node_;
  const Value& operand_;
  MeshAxis axis_;
};

}  // namespace

Graph flat_collectives(Graph graph) {
  const auto is_one = [](const Node& node) { return is_collective(*node.op); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_one)) return graph;
  return rebuild(graph,
                 [&](GraphBuilder& b, const Node& node, std::span<const Value> operands) -> std::optional<Value> {
                   if (!is_one(node)) return std::nullopt;
                   if (!node.operands.empty()) return FlatCollective(node, operands[0]).run();
                   const MeshAxis axis = axis_of(node);
                   if (axis.ranks == 1) return constant(b, 0, i64);
                   return dim_value(b, Dim(mesh_index_dim(axis.name)), i64);
                 });
}

}  // namespace lathe::ir
