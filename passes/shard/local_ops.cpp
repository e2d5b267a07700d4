#include "passes/shard/local_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/collectives.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/ops/rules/view_rules.h"
#include "ir/support/error.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/node_map.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// Returns the position of the process along an axis, in the graph that is being built.
using PositionAlong = std::function<Value(const MeshAxis& axis)>;

Value take_split(const Value& a, int dim, const Dim& outer, const MeshAxis& axis, const Value& position) {
  Shape parts, result;
  for (int d = 0; d < a.rank(); ++d) {
    if (d != dim) {
      parts.push_back(a.shape()[d]);
      result.push_back(a.shape()[d]);
      continue;
    }
    const Dim rest = *a.shape()[d].unnamed().divided_by(outer.unnamed() * Dim(axis.ranks));
    for (const Dim& size : {outer.unnamed(), Dim(axis.ranks), rest}) parts.push_back(size);
    result.push_back(outer.unnamed() * rest);
  }
  const Value held = ir::gather(shown_as(a, parts), position, dim + 1);
  return shown_as(held, result);
}

/// Returns the shard of a whole value that a process holds under a placement.
Value take_placed(const Value& whole, const Placement& placement, const Mesh& mesh, const PositionAlong& position) {
  // The innermost split of a dim comes first, so that the sizes outside of it are still those of the whole.
  std::vector<std::pair<int, const SplitDim*>> splits;
  for (int a = 0; a < mesh.axis_count(); ++a)
    if (const auto* split = std::get_if<SplitDim>(&placement[a])) splits.emplace_back(a, split);
  const auto inner_first = [](const auto& a, const auto& b) {
    if (a.second->dim != b.second->dim) return a.second->dim < b.second->dim;
    return b.second->outer != a.second->outer && a.second->outer.divided_by(b.second->outer).has_value();
  };
  std::stable_sort(splits.begin(), splits.end(), inner_first);
  Value held = whole;
  for (const auto& [axis, split] : splits)
    held = take_split(held, split->dim, split->outer, mesh[axis], position(mesh[axis]));
  return held;
}

Value add_checked(GraphBuilder& builder, const Graph& graph, const SplitPlan& splits, ValueId id,
                  std::span<const Value> operands, const Shape& local, const PositionAlong& position);

class LocalOp {
 public:
  LocalOp(GraphBuilder& builder, const Graph& graph, const SplitPlan& splits, ValueId id,
          std::span<const Value> operands, const Shape& local, const PositionAlong& position)
      : builder_(builder),
        graph_(graph),
        splits_(splits),
        id_(id),
        node_(graph[id]),
        operands_(operands),
        local_(local),
        position_(position) {}

  Value add() const {
    if (node_.op->as<Argument>()) return builder_.argument(*node_.op, node_.name, node_.type.dtype, local_);
    if (node_.op->as<View>()) return view();
    if (is_loop(node_)) return loop();
    if (const auto* custom = node_.op->as<Custom>()) return custom_op(custom->kind);
    return same(node_.attrs);
  }

 private:
  Value same(Attributes attrs) const { return builder_.add(*node_.op, operands_, std::move(attrs)); }
  int dim_attr(int rank) const { return rules::normalize_axis(node_.attrs.get<std::int64_t>("dim"), rank); }
  const Shape& operand_shape(int i) const { return graph_[node_.operands[i]].type.shape; }

  /// Returns a position in dim `dim` of the value, a multiple of the size of its blocks, in local terms.
  Dim position(const Dim& whole, ValueId id, int dim) const {
    const auto local = splits_.whole(whole).unnamed().divided_by(Dim(splits_.ranks(id, dim)));
    LATHE_ASSERT(local.has_value());
    return *local;
  }

  Value view() const {
    if (node_.op == &ops::view) return shown_as(operands_[0], local_);
    Attributes attrs = node_.attrs;
    if (node_.op == &ops::expand) attrs.set("shape", local_);
    if (node_.op == &ops::slice) {
      const int d = dim_attr(node_.type.rank());
      const auto bounds =
          rules::slice_bounds(operand_shape(0)[d], node_.attrs.get<Dim>("start"), node_.attrs.get<Dim>("stop"));
      attrs.set("start", position(bounds.start, node_.operands[0], d));
      attrs.set("stop", position(bounds.stop, node_.operands[0], d));
    }
    return same(std::move(attrs));
  }

  Value custom_op(CustomKind kind) const {
    Attributes attrs = node_.attrs;
    switch (kind) {
      case CustomKind::constant: return constant();
      case CustomKind::iota: return iota();
      case CustomKind::random: return random();
      case CustomKind::gather: return gather();
      case CustomKind::scatter_add: return scatter_add();
      case CustomKind::pad:
        for (const std::string_view name : {"low", "high"})
          attrs.set(name, position(node_.attrs.get<Dim>(name), id_, dim_attr(node_.type.rank())));
        return same(std::move(attrs));
      case CustomKind::top_k: attrs.set("k", splits_.whole(node_.attrs.get<Dim>("k"))); return same(std::move(attrs));
      case CustomKind::update_rows:
      case CustomKind::cumsum:
      case CustomKind::linear_recurrence:
      case CustomKind::argsort:
      case CustomKind::cholesky:
      case CustomKind::solve_triangular:
      case CustomKind::orthonormal_basis:
      case CustomKind::eigenvectors:
      case CustomKind::grouped_matmul:
      case CustomKind::segment_outer:
      case CustomKind::concat:
      case CustomKind::view_as_complex:
      case CustomKind::view_as_real:
      case CustomKind::random_at:
      case CustomKind::collective: break;
    }
    return same(std::move(attrs));
  }

  Value constant() const {
    const bool one_value = node_.attrs.get<NumberList>("values").size() == 1;
    Attributes attrs = node_.attrs;
    Shape shape;
    for (const Dim& size : node_.type.shape) shape.push_back(splits_.whole(size));
    attrs.set("shape", one_value ? local_ : shape);
    const Value value = same(std::move(attrs));
    return one_value ? value : take_placed(value, splits_.placement(id_), splits_.mesh(), position_);
  }

  /// Returns the positions in dim d of the whole value that a process holds: i64 [n].
  Value positions(int d) const {
    const Placement placement = splits_.placement(id_);
    Placement here(placement.size(), Whole{});
    std::optional<Value> start;
    bool blocks = false;
    for (std::size_t a = 0; a < placement.size(); ++a) {
      const auto* split = std::get_if<SplitDim>(&placement[a]);
      if (!split || split->dim != d) continue;
      here[a] = SplitDim{0, split->outer, split->unit};
      blocks = blocks || start || !split->outer.is(1);
      start = position_(splits_.mesh()[static_cast<int>(a)]);
    }
    const Dim local = splits_.local(id_, d);
    if (!start) return ir::iota(builder_, {local}, 0, i64);
    if (blocks)
      return take_placed(ir::iota(builder_, {splits_.whole(node_.type.shape[d]).unnamed()}, 0, i64), here,
                         splits_.mesh(), position_);
    return ir::add(ir::iota(builder_, {local}, 0, i64), ir::mul(*start, ir::dim_value(builder_, local, i64)));
  }

  /// Views [n] as dim d of a shape of this rank.
  Value along(const Value& positions, int d) const {
    Shape shape(std::vector<Dim>(static_cast<std::size_t>(node_.type.rank()), Dim(1)));
    shape.set(d, positions.shape()[0]);
    return shown_as(positions, shape);
  }

  Value iota() const {
    const int d = dim_attr(node_.type.rank());
    Attributes attrs = node_.attrs;
    attrs.set("shape", local_);
    if (!splits_.is_split_dim(id_, d)) return same(std::move(attrs));
    const Value values = along(ir::cast(positions(d), node_.type.dtype), d);
    return ir::expand(values, local_);
  }

  /// Draws each element by its number in the whole tensor.
  Value random() const {
    bool split = false;
    for (int d = 0; d < node_.type.rank(); ++d) split = split || splits_.is_split_dim(id_, d);
    Attributes attrs = node_.attrs;
    if (!split) {
      attrs.set("shape", local_);
      return same(std::move(attrs));
    }
    std::optional<Value> number;
    Dim stride(1);
    for (int d = node_.type.rank(); d-- > 0;) {
      const Value one = along(positions(d), d);
      const Value scaled = stride.is(1) ? one : ir::mul(one, ir::dim_value(builder_, stride, i64));
      number = number ? ir::add(*number, scaled) : scaled;
      stride = stride * splits_.whole(node_.type.shape[d]).unnamed();
    }
    return builder_.add(
        ops::random_uniform_at, {operands_[0], *number},
        {{"dtype", node_.attrs.get<DType>("dtype")}, {"stream", node_.attrs.get<std::int64_t>("stream")}});
  }

  /// Positions in the process's shard of a dim, and whether the indices are inside it.
  struct OwnPositions {
    Value position, inside;
  };
  /// `indices` refer to dim d of the value.
  OwnPositions own_positions(const Value& indices, ValueId of, int d) const {
    const Placement placement = splits_.placement(of);
    std::optional<Value> process;
    for (std::size_t a = 0; a < placement.size(); ++a) {
      const auto* split = std::get_if<SplitDim>(&placement[a]);
      if (!split || split->dim != d) continue;
      if (process || !split->outer.is(1))
        throw UserError(
            node_.loc, "shard",
            fmt::format("{} looks elements up in a dim that is split within blocks", node_.op->name.value),
            "shard_lookup", "split the dim on its outermost part, over one axis");
      process = position_(splits_.mesh()[static_cast<int>(a)]);
    }
    LATHE_ASSERT(process.has_value());
    const Value size = ir::dim_value(builder_, splits_.local(of, d), indices.dtype());
    const Value start = ir::mul(ir::cast(*process, indices.dtype()), size);
    const Value checked = ir::checked_index(indices, splits_.whole(graph_[of].type.shape[d]).unnamed());
    const Value local = ir::sub(checked, start);
    const Value inside = ir::logical_and(ir::ge(local, 0.0), ir::lt(local, size));
    return {ir::where(inside, local, 0.0), inside};
  }

  /// Views the dims of the indices as dims d .. of a value of this rank.
  static Value among(const Value& indices, int d, const Shape& shape) {
    Shape to(std::vector<Dim>(static_cast<std::size_t>(shape.rank()), Dim(1)));
    for (int i = 0; i < indices.rank(); ++i) to.set(d + i, shape[d + i]);
    return shown_as(indices, to);
  }

  static Value zero_like(const Value& a) {
    return is_complex(a.dtype()) || a.dtype() == boolean ? ir::full(a.builder(), {}, 0, a.dtype())
                                                         : ir::number_like(a, 0);
  }

  /// Looks up a sharded table: rows of other processes are 0 here, and the sum over all processes has all rows.
  Value gather() const {
    const int d = dim_attr(operand_shape(0).rank());
    if (!splits_.is_split_dim(node_.operands[0], d)) return same(node_.attrs);
    const OwnPositions own = own_positions(operands_[1], node_.operands[0], d);
    const Value rows = ir::gather(operands_[0], own.position, d);
    return ir::where(among(own.inside, d, rows.shape()), rows, zero_like(rows));
  }

  Value scatter_add() const {
    const int d = dim_attr(node_.type.rank());
    if (!splits_.is_split_dim(id_, d)) {
      Attributes attrs = node_.attrs;
      attrs.set("size", splits_.local(id_, d));
      return same(std::move(attrs));
    }
    const OwnPositions own = own_positions(operands_[0], id_, d);
    const Value& updates = operands_[1];
    const Value kept = ir::where(among(own.inside, d, updates.shape()), updates, zero_like(updates));
    return ir::scatter_add(own.position, kept, splits_.local(id_, d), d);
  }

  /// Builds the body of a process. Positions along axes are inputs that come after those of the whole body.
  Value loop() const {
    const Graph& whole = loop_body(node_).graph();
    const SplitPlan splits = splits_.body(id_);
    GraphBuilder body(whole.name);
    std::vector<Value> operands(operands_.begin(), operands_.end());
    std::map<std::string, Value> positions;
    const PositionAlong position = [&](const MeshAxis& axis) {
      const auto known = positions.find(axis.name);
      if (known != positions.end()) return known->second;
      operands.push_back(position_(axis));
      const Value made = body.argument(ops::input, body.free_name(mesh_index_dim(axis.name)), i64, {});
      return positions.insert({axis.name, made}).first->second;
    };
    NodeMap<std::optional<Value>> values(whole);
    const auto add_value = [&](ValueId id) {
      std::vector<Value> of_node;
      for (const ValueId operand : whole[id].operands) of_node.push_back(*values[operand]);
      values[id] = add_checked(body, whole, splits, id, of_node, splits.local_shape(id), position);
      if (!whole[id].name.empty() && !whole[id].op->as<Argument>()) body.set_name(*values[id], whole[id].name);
    };
    for (const ValueId id : whole.arguments()) add_value(id);
    for (const ValueId id : all_values(whole))
      if (!values[id]) add_value(id);
    for (const Output& output : whole.outputs) body.output(output.name, *values[output.value]);
    for (const Update& update : whole.updates) body.update(*values[update.state], *values[update.value]);
    for (DimCheck check : whole.checks) {
      check.left = splits.whole(check.left);
      check.right = splits.whole(check.right);
      body.add_checks({&check, 1});
    }
    Attributes attrs = node_.attrs;
    attrs.set("body", Body(body.finish()));
    attrs.set("trips", splits_.whole(loop_trips(node_)));
    return builder_.add(*node_.op, operands, std::move(attrs));
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  const SplitPlan& splits_;
  ValueId id_;
  const Node& node_;
  std::span<const Value> operands_;
  const Shape& local_;
  const PositionAlong& position_;
};

Value add_checked(GraphBuilder& builder, const Graph& graph, const SplitPlan& splits, ValueId id,
                  std::span<const Value> operands, const Shape& local, const PositionAlong& position) {
  const GraphBuilder::At at(builder, graph[id].loc);
  const Value value = LocalOp(builder, graph, splits, id, operands, local, position).add();
  if (value.shape() != local || value.dtype() != graph[id].type.dtype)
    throw InternalError(fmt::format("{} of {} gives {} on a process, not {}", graph[id].op->name.value,
                                    graph[id].type.to_string(), value.type().to_string(), local.to_string()));
  return value;
}

}  // namespace

Value shown_as(const Value& a, const Shape& shape) {
  if (a.type().shape.looks_like(shape)) return a;
  return ir::view(rules::view_strides(a.type(), shape) ? a : ir::contiguous(a), shape);
}

Value take_part(const Value& whole, int dim, const Dim& blocks, const MeshAxis& axis) {
  return take_split(whole, dim, blocks, axis, mesh_index(whole.builder(), axis));
}

Value add_local(GraphBuilder& builder, const Graph& graph, const SplitPlan& splits, ValueId id,
                std::span<const Value> operands, const Shape& local) {
  return add_checked(builder, graph, splits, id, operands, local,
                     [&](const MeshAxis& axis) { return mesh_index(builder, axis); });
}

}  // namespace lathe::shard
