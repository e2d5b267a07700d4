#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/rules/operand_rules.h"
#include "ir/support/error.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"
#include "passes/shard/plan/body_sums.h"
#include "passes/shard/plan/factors.h"
#include "passes/shard/plan/sequence_cuts.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/expand.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// Ties the dims of a graph, or of a loop's body.
class DimTies {
 public:
  /// `loop` is the loop of the whole graph that the body belongs to, also for the body of a loop in a loop.
  DimTies(const Graph& graph, const std::map<ValueId, Cut>& cuts, FactoredGraph& result, GraphDims& dims,
          std::vector<BlockedInBody>& in_bodies, std::optional<ValueId> loop = {})
      : graph_(graph), cuts_(cuts), result_(result), dims_(dims), in_bodies_(in_bodies), loop_(loop) {
    dims_.dims = NodeMap<std::vector<FactorList>>(graph);
  }

  void run() {
    for (const ValueId id : all_values(graph_)) {
      auto& dims = dims_.dims[id];
      for (const Dim& size : graph_[id].type.shape) dims.push_back(result_.factors.make(size));
      tie_node(id);
    }
    for (const Update& update : graph_.updates)
      for (int d = 0; d < graph_[update.state].type.rank(); ++d)
        result_.factors.tie(dims_.dim(update.state, d), dims_.dim(update.value, d), named(update.value));
  }

 private:
  /// Returns the node of the whole graph that errors name for a node of this graph.
  ValueId named(ValueId id) const { return loop_.value_or(id); }

  void tie_node(ValueId id) {
    const Node& node = graph_[id];
    if (node.op->as<Argument>()) return;
    if (const auto cut = cuts_.find(id); cut != cuts_.end()) return tie_cut(id, cut->second);
    if (node.op->as<Elementwise>()) return tie_elementwise(id);
    if (const auto* meaning = node.op->as<View>()) return tie_view(id, meaning->map(graph_, node));
    if (node.op->as<Reduce>()) return tie_reduce(id);
    if (const auto* meaning = node.op->as<Contraction>()) return tie_contraction(id, meaning->roles(node));
    if (node.op->as<Loop>()) return tie_loop(id);
    const auto* meaning = node.op->as<Custom>();
    LATHE_ASSERT(meaning);
    tie_custom(id, meaning->sharding);
  }

  /// Returns the dims of the body of a loop, which all of its results share.
  const GraphDims& body_of(ValueId id) {
    const Node& node = graph_[id];
    for (const auto& [other, dims] : dims_.bodies)
      if (is_same_loop(graph_[other], node)) return *(dims_.bodies[id] = dims);
    const auto dims = dims_.bodies[id] = std::make_shared<GraphDims>();
    static const std::map<ValueId, Cut> no_cuts;
    DimTies(loop_body(node).graph(), no_cuts, result_, *dims, in_bodies_, named(id)).run();
    return *dims;
  }

  /// Ties operands and results to the arguments and results of the body. All processes run all iterations.
  void tie_loop(ValueId id) {
    const Node& node = graph_[id];
    const Graph& body = loop_body(node).graph();
    const GraphDims& dims = body_of(id);
    const std::vector<ValueId> arguments = body.arguments();
    const int carries = carry_count(node), sequences = sequence_count(node);
    const auto tie_to = [&](ValueId value, int lead, ValueId inner) {
      for (int d = 0; d < body[inner].type.rank(); ++d)
        result_.factors.tie(dims_.dim(value, lead + d), dims.dim(inner, d), named(id));
      if (lead == 1) block(value, 0, {id, "it has an element for each iteration"});
    };
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i)
      tie_to(node.operands[i], i >= carries && i < carries + sequences ? 1 : 0,
             arguments[static_cast<std::size_t>(i)]);
    const int result = loop_result(node);
    if (result < carries)
      tie_to(id, 0, arguments[static_cast<std::size_t>(result)]);
    else
      tie_to(id, 1, body.outputs[static_cast<std::size_t>(result - carries)].value);
  }

  void tie(ValueId operand, int operand_dim, ValueId result, int result_dim) {
    result_.factors.tie(dims_.dim(operand, operand_dim), dims_.dim(result, result_dim), named(result));
  }

  void tie_cut(ValueId id, const Cut& cut) {
    for (int d = 0; d < graph_[id].type.rank(); ++d)
      if (d != cut.dim) tie(graph_[id].operands[0], d, id, d);
  }

  /// Records that `node` computes or reads dim `dim` of a value as a whole.
  void block(ValueId value, int dim, const Obstacle& obstacle) {
    const FactorList& list = dims_.dim(value, dim);
    if (!loop_) result_.blocked.push_back({obstacle.node, value, dim, obstacle.why});
    block_list(list, obstacle);
  }

  void block_list(const FactorList& list, const Obstacle& obstacle) {
    if (!loop_) return result_.factors.block(list, obstacle);
    const Node& node = graph_[obstacle.node];
    const std::string why =
        fmt::format("in its body, {} at {}: {}", node.op->name.value, node.loc.to_string(), obstacle.why);
    in_bodies_.push_back({*loop_, list, why});
    result_.factors.block(list, {*loop_, why});
  }

  /// NumPy broadcasting: aligned from the last dim; a size of 1 has no factors.
  void tie_elementwise(ValueId id) {
    const Node& node = graph_[id];
    for (const ValueId operand : node.operands) {
      const Shape& shape = graph_[operand].type.shape;
      const int lead = node.type.rank() - shape.rank();
      for (int d = 0; d < shape.rank(); ++d)
        if (!shape[d].is(1)) tie(operand, d, id, lead + d);
    }
  }

  void tie_reduce(ValueId id) {
    const Node& node = graph_[id];
    const int rank = graph_[node.operands[0]].type.rank();
    const auto folded = rules::normalize_axes(node.attrs.get<std::vector<std::int64_t>>("dims"), rank);
    const bool parts_combine = node.op->as<Reduce>()->combine != ScalarOp::mul;  // processes add, or take extrema
    int out = 0;
    for (int d = 0; d < rank; ++d) {
      const bool is_folded = std::find(folded.begin(), folded.end(), d) != folded.end();
      if (!is_folded) tie(node.operands[0], d, id, out);
      if (is_folded && loop_ && node.op->as<Reduce>()->combine != ScalarOp::add)
        block(node.operands[0], d, {id, "the results of processes would have to be compared in each iteration"});
      if (is_folded && !parts_combine) block(node.operands[0], d, {id, "it multiplies all elements of the dim"});
      if (!is_folded || node.attrs.get<bool>("keepdim")) ++out;
    }
  }

  void tie_contraction(ValueId id, const ContractionRoles& roles) {
    const Node& node = graph_[id];
    const auto tie_labels = [&](ValueId from, const std::string& labels, ValueId to, const std::string& others) {
      for (std::size_t i = 0; i < labels.size(); ++i)
        if (const auto j = others.find(labels[i]); j != std::string::npos)
          result_.factors.tie(dims_.dim(from, static_cast<int>(i)), dims_.dim(to, static_cast<int>(j)), named(id));
    };
    tie_labels(node.operands[0], roles.lhs, node.operands[1], roles.rhs);
    tie_labels(node.operands[0], roles.lhs, id, roles.out);
    tie_labels(node.operands[1], roles.rhs, id, roles.out);
  }

  void tie_view(ValueId id, const IndexMap& map) {
    const Node& node = graph_[id];
    const ValueId operand = node.operands[0];
    if (map.reshape) {
      FactorList from, to;
      for (int d = 0; d < graph_[operand].type.rank(); ++d) append(from, dims_.dim(operand, d));
      for (int d = 0; d < node.type.rank(); ++d) append(to, dims_.dim(id, d));
      return result_.factors.tie(from, to, named(id));
    }
    std::vector<int> readers(static_cast<std::size_t>(node.type.rank()), 0);
    for (const auto& component : map.components) component.each_term([&](int dim, std::int64_t) { ++readers[dim]; });
    for (int i = 0; i < static_cast<int>(map.components.size()); ++i) {
      const IndexMap::Component& component = map.components[i];
      const bool alone = component.dim < 0 || readers[component.dim] == 1;
      tie_component(id, i, component, alone);
    }
  }

  static void append(FactorList& list, const FactorList& more) { list.insert(list.end(), more.begin(), more.end()); }

  /// Ties dim i of a view's operand to dim `component.dim` of the result, which covers all of it or a block of it.
  void tie_component(ValueId id, int i, const IndexMap::Component& component, bool alone) {
    const Node& node = graph_[id];
    const ValueId operand = node.operands[0];
    const Dim& whole = graph_[operand].type.shape[i];
    if (whole.is(1) && component.dim < 0) return;
    if (component.dim >= 0 && alone && component.scale == 1 && component.more.empty()) {
      const Dim& shown = node.type.shape[component.dim];
      if (shown == whole) return tie(operand, i, id, component.dim);
      const auto blocks = whole.unnamed().divided_by(shown.unnamed());
      if (blocks && component.offset.unnamed().divided_by(shown.unnamed()))
        return tie_block(operand, i, id, component.dim, *blocks, id);
    }
    const std::string_view does = component.scale < 0 ? "reverses" : "takes some of";
    const Obstacle obstacle{id, fmt::format("{} {} {} elements", node.op->name.value, does, whole.to_string())};
    block(operand, i, obstacle);
    component.each_term([&](int dim, std::int64_t) { block(id, dim, obstacle); });
  }

  /// Dim `d` of `whole` is `blocks` times dim `e` of `part`.
  void tie_block(ValueId whole, int d, ValueId part, int e, const Dim& blocks, ValueId node) {
    FactorList list = result_.factors.make(blocks);
    block_list(list, {node, fmt::format("{} treats its blocks differently", graph_[node].op->name.value)});
    append(list, dims_.dim(part, e));
    result_.factors.tie(dims_.dim(whole, d), list, named(node));
  }

  std::vector<DimPair> pairs_of(ValueId id, const Sharding& sharding) const {
    const Node& node = graph_[id];
    if (const auto* rule = std::get_if<DimRule>(&sharding)) return (*rule)(graph_, node);
    std::vector<DimPair> pairs;
    if (!std::holds_alternative<ByOrder>(sharding)) return pairs;
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
      const int rank = graph_[node.operands[i]].type.rank();
      for (int d = 0; d < std::min(rank, node.type.rank()); ++d) pairs.push_back({i, d, d});
    }
    return pairs;
  }

  void tie_custom(ValueId id, const Sharding& sharding) {
    const Node& node = graph_[id];
    std::vector<std::vector<bool>> tied;
    std::vector<bool> made(static_cast<std::size_t>(node.type.rank()), false);
    for (const ValueId operand : node.operands)
      tied.emplace_back(static_cast<std::size_t>(graph_[operand].type.rank()), false);
    for (const DimPair& pair : pairs_of(id, sharding)) {
      made[pair.result_dim] = true;
      const ValueId operand = node.operands[pair.operand];
      const Dim &size = graph_[operand].type.shape[pair.operand_dim], &result = node.type.shape[pair.result_dim];
      tied[pair.operand][pair.operand_dim] = true;
      if (size == result)
        tie(operand, pair.operand_dim, id, pair.result_dim);
      else if (const auto blocks = size.is(0) ? std::nullopt : result.unnamed().divided_by(size.unnamed()))
        tie_block(id, pair.result_dim, operand, pair.operand_dim, *blocks, id);
      else
        tie(operand, pair.operand_dim, id, pair.result_dim);
    }
    tie_lookup(id, tied);
    const auto* replicated = std::get_if<Replicated>(&sharding);
    for (std::size_t i = 0; i < tied.size(); ++i)
      for (std::size_t d = 0; d < tied[i].size(); ++d)
        if (!tied[i][d])
          block(node.operands[i], static_cast<int>(d),
                {id, replicated ? std::string(replicated->why)
                                : fmt::format("{} looks at all of it", node.op->name.value)});
    block_rest_of_result(id, made);
  }

  /// A gather's table may be split along the dim that is looked up, and scatter_add's indices and updates along the
  /// dims of the indices. Each process then computes its share of a sum.
  void tie_lookup(ValueId id, std::vector<std::vector<bool>>& tied) {
    const Node& node = graph_[id];
    const CustomKind kind = node.op->as<Custom>()->kind;
    if (kind == CustomKind::gather && node.type.dtype != boolean && !is_byte(node.type.dtype)) {
      const int rank = graph_[node.operands[0]].type.rank();
      tied[0][rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), rank)] = true;
    }
    if (kind == CustomKind::scatter_add) {
      const int d = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
      for (int i = 0; i < graph_[node.operands[0]].type.rank(); ++i) {
        tied[0][i] = tied[1][d + i] = true;
        result_.factors.tie(dims_.dim(node.operands[0], i), dims_.dim(node.operands[1], d + i), named(id));
      }
    }
  }

  /// Dims of the result that are tied to no operand are computed as a whole, except those of which a process can
  /// compute any part from positions. `made` marks the tied dims.
  void block_rest_of_result(ValueId id, const std::vector<bool>& made) {
    const Node& node = graph_[id];
    const CustomKind kind = node.op->as<Custom>()->kind;
    const auto block_dim = [&](int d, std::string why) { block(id, d, {id, std::move(why)}); };
    if (kind == CustomKind::view_as_real) block_dim(node.type.rank() - 1, "it holds real and imaginary part");
    if (kind == CustomKind::collective)
      for (int d = 0; d < node.type.rank(); ++d) block_dim(d, "it is exchanged between processes");
    if (!makes_any_part(kind))
      for (int d = 0; d < node.type.rank(); ++d)
        if (!made[d]) block_dim(d, fmt::format("{} makes all of it at once", node.op->name.value));
  }

  /// Whether local_ops.cpp computes a part of it by positions in the whole.
  static bool makes_any_part(CustomKind kind) {
    return kind == CustomKind::constant || kind == CustomKind::iota || kind == CustomKind::random ||
           kind == CustomKind::scatter_add;
  }

  const Graph& graph_;
  const std::map<ValueId, Cut>& cuts_;
  FactoredGraph& result_;
  GraphDims& dims_;  ///< of this graph
  std::vector<BlockedInBody>& in_bodies_;
  std::optional<ValueId> loop_;
};

/// Lists the dims of loops that ops of their bodies block.
void list_blocked(const Graph& graph, FactoredGraph& result, const std::vector<BlockedInBody>& in_bodies) {
  for (const auto& [id, body] : result.bodies) {
    std::map<Factor, std::string> whys;
    for (const BlockedInBody& each : in_bodies)
      if (is_same_loop(graph[each.loop], graph[id]))
        for (const Factor factor : result.factors.resolve(each.list)) whys.insert({factor, each.why});
    const auto list = [&](ValueId value) {
      for (int d = 0; d < graph[value].type.rank(); ++d)
        for (const Factor factor : result.factors.resolve(result.dim(value, d)))
          if (const auto why = whys.find(factor); why != whys.end()) {
            result.blocked.push_back({id, value, d, why->second});
            break;
          }
    };
    for (const ValueId operand : graph[id].operands) list(operand);
    list(id);
  }
}

}  // namespace

Graph primitives_of(const Graph& graph) {
  return on_bodies(dce(expand(graph)), [](Graph body) { return dce(expand(std::move(body))); });
}

FactoredGraph factor_dims(const Graph& graph, const std::map<ValueId, Cut>& cuts) {
  FactoredGraph result;
  std::vector<BlockedInBody> in_bodies;
  DimTies(graph, cuts, result, result, in_bodies).run();
  plan_body_sums(graph, result, in_bodies);
  list_blocked(graph, result, in_bodies);
  return result;
}

}  // namespace lathe::shard
