#include "passes/fusion/attention/fuse_attention.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/ancestors.h"
#include "passes/fusion/attention/attention_cost.h"
#include "passes/fusion/attention/softmax_sums.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/transforms/recompute.h"

namespace lathe {

using namespace ir;

namespace {

bool is_point_wise(const Node& node) { return node.op->as<Elementwise>() || node.op == &ops::contiguous; }

class FusionSearch {
 public:
  FusionSearch(const AttentionSubject& subject, const AttentionSearchOptions& options)
      : subject_(subject), graph_(subject.graph), options_(options), group_of_(graph_, -1), notes_(graph_) {}

  AttentionSearch run() {
    for (const ValueId id : all_values(graph_))
      if (graph_[id].op->as<Contraction>() && group_of(id) < 0 && leads_to_exp(id)) grow(id);
    report_softmaxes();
    return std::move(found_);
  }

 private:
  int& group_of(ValueId id) { return group_of_[id]; }

  /// Whether an exp follows the matmul through point-wise nodes and reductions.
  bool leads_to_exp(ValueId scores) const {
    std::vector<ValueId> work = {scores};
    for (std::size_t i = 0; i < work.size() && i < 64; ++i)
      for (const ValueId user : subject_.users[work[i]]) {
        const Node& node = graph_[user];
        if (is_exponential(node)) return true;
        if (is_point_wise(node) || node.op->as<View>() || node.op->as<Reduce>()) work.push_back(user);
      }
    return false;
  }

  void grow(ValueId scores) {
    const ContractionRoles roles = graph_[scores].op->as<Contraction>()->roles(graph_[scores]);
    const std::string free = roles.lhs_free() + roles.rhs_free();
    std::optional<ValueId> gate;
    for (auto columns = roles.out.rbegin(); columns != roles.out.rend(); ++columns) {
      if (free.find(*columns) == std::string::npos) continue;
      AttentionGrower grower(subject_, notes_, scores, *columns, options_);
      const auto group = grower.run();
      const auto cost = group && options_.costs ? attention_cost(subject_, *group, *options_.costs) : std::nullopt;
      if (cost && cost->plain < cost->fused) {
        const std::string reason = fmt::format(
            "plain is faster: estimated at {:.0f} multiply-adds a score, fused at {:.0f}", cost->plain, cost->fused);
        rejections_.insert_or_assign(scores, AttentionGrower::Rejection{scores, reason});
        return;
      }
      if (group && take(*group)) return;
      if (!grower.rejections().empty()) rejections_.try_emplace(scores, grower.rejections().front());
      if (!gate) gate = grower.no_softmax();
    }
    if (gate) found_.gates.push_back(*gate);
  }

  bool take(const AttentionGroup& group) {
    const auto apart = [&](ValueId id) { return group_of(id) < 0; };
    if (!std::all_of(group.members.begin(), group.members.end(), apart) ||
        !std::all_of(group.consumers.begin(), group.consumers.end(), apart))
      return false;
    for (const auto* ids : {&group.members, &group.consumers, &group.sums})
      for (const ValueId id : *ids) group_of(id) = static_cast<int>(found_.groups.size());
    found_.groups.push_back(group);
    return true;
  }

  bool sums_exp(ValueId id) const {
    return reduces_by(graph_[id], ScalarOp::add) &&
           is_exponential(graph_[through_aliases(graph_, graph_[id].operands[0])]);
  }

  bool is_empty(ValueId id) const { return graph_[id].type.shape.numel().is(0); }

  /// By node: whether a matmul of the model itself, not of its gradient, reads it directly or through point-wise
  /// nodes.
  NodeMap<bool> weights() const {
    NodeMap<bool> found(graph_, false);
    for (std::int32_t i = graph_.size() - 1; i >= 0; --i)
      for (const ValueId user : subject_.users[ValueId{i}]) {
        const Node& node = graph_[user];
        if (node.loc.gradient()) continue;
        const bool passes = is_point_wise(node) || node.op->as<View>();
        if (node.op->as<Contraction>() || (passes && found[user])) found[{i}] = true;
      }
    return found;
  }

  /// By node: the value that it is computed from point-wise. Of several operands, the one with the highest rank: the
  /// first of the widest.
  NodeMap<ValueId> sources() const {
    NodeMap<ValueId> found(graph_);
    for (const ValueId id : all_values(graph_)) {
      ValueId& source = found[id];
      source = id;
      if (is_alias(graph_[id])) source = found[graph_[id].operands[0]];
      if (!is_point_wise(graph_[id])) continue;
      ValueId widest = graph_[id].operands[0];
      for (const ValueId operand : graph_[id].operands) {
        const Node &one = graph_[operand], &best = graph_[widest];
        if (one.type.rank() > best.type.rank() || (!is_float(best.type.dtype) && is_float(one.type.dtype)))
          widest = operand;
      }
      source = found[widest];
    }
    return found;
  }

  void report_softmaxes() {
    const NodeMap<bool> weighs = weights();
    const NodeMap<ValueId> source_of = sources();
    for (const ValueId id : all_values(graph_)) {
      if (!sums_exp(id)) continue;
      const ValueId exp = through_aliases(graph_, graph_[id].operands[0]);
      AttentionReport found{.softmax = id,
                            .attention = weighs[exp] && !is_empty(exp),
                            .fused = group_of(id) >= 0,
                            .at = id,
                            .reason = ""};
      if (!found.fused) explain(found, source_of[exp]);
      found_.reports.push_back(std::move(found));
    }
  }

  void explain(AttentionReport& report, ValueId scores) const {
    report.at = scores;
    if (!graph_[scores].op->as<Contraction>()) {
      report.reason = "its scores come from no product of matrices";
    } else if (const auto at = rejections_.find(scores); at != rejections_.end()) {
      report.at = at->second.at;
      report.reason = at->second.reason;
    } else {
      report.reason = "its scores belong to another attention";
    }
  }

  const AttentionSubject& subject_;
  const Graph& graph_;
  AttentionSearchOptions options_;
  NodeMap<int> group_of_;
  AttentionNotes notes_;
  std::map<ValueId, AttentionGrower::Rejection> rejections_;  // the first one, by the matmul that computes the scores
  AttentionSearch found_;
};

/// Finds the members that readers outside the group need, with everything in between that is not in memory.
class LateReaders {
 public:
  LateReaders(const Graph& graph, const AttentionSubject& subject, const AttentionGroup& group)
      : graph_(graph), subject_(subject), group_(group) {
    for (const auto* ids : {&group.members, &group.consumers}) inside_.insert(ids->begin(), ids->end());
  }

  Recomputation find() {
    for (const ValueId id : outer_readers()) {
      bool late = false;
      for (const ValueId operand : graph_[id].operands) late = copy(operand) || late;
      if (late) found_.readers.push_back(id);
    }
    found_.values.assign(values_.begin(), values_.end());
    return std::move(found_);
  }

 private:
  /// Returns the nodes outside that read a member, directly or through nodes that are not in memory; in order.
  std::set<ValueId> outer_readers() const {
    std::set<ValueId> readers;
    std::vector<ValueId> work = group_.members;
    std::set<ValueId> shown;
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      for (const ValueId user : subject_.users[id]) {
        if (inside_.contains(user)) continue;
        if (!subject_.is_transparent(user)) {
          readers.insert(user);
        } else if (shown.insert(user).second) {
          work.push_back(user);
        }
      }
    }
    return readers;
  }

  /// Whether `id` is, or is an alias of, a member over rows and columns; records the nodes that must be copied for
  /// it.
  bool copy(ValueId id) {
    const auto leads_on = [&](ValueId value) {
      return !known_.contains(value) && (inside_.contains(value) ? is_copied(value) : subject_.is_transparent(value));
    };
    for (const ValueId value : ancestors(graph_, id, leads_on)) {
      if (known_.contains(value)) continue;
      const auto& operands = graph_[value].operands;
      const auto shows = [&](ValueId operand) { return known_.at(operand); };
      const bool wanted = inside_.contains(value) ? is_copied(value)
                                                  : subject_.is_transparent(value) &&
                                                        std::any_of(operands.begin(), operands.end(), shows);
      known_[value] = wanted;
      if (wanted) values_.insert(value);
    }
    return known_.at(id);
  }

  /// For a member or consumer.
  bool is_copied(ValueId id) const { return over_rows_and_columns(id) && !subject_.in_memory[id]; }

  bool over_rows_and_columns(ValueId id) const {
    const auto at = group_.dims.find(id);
    if (at == group_.dims.end()) return false;
    const auto has = [&](int d) { return std::find(at->second.begin(), at->second.end(), d) != at->second.end(); };
    return has(group_.row) && has(group_.domain.rank() - 1);
  }

  const Graph& graph_;
  const AttentionSubject& subject_;
  const AttentionGroup& group_;
  std::set<ValueId> inside_;
  std::map<ValueId, bool> known_;
  std::set<ValueId> values_;
  Recomputation found_;
};

std::set<ValueId> consumers_of(const AttentionSearch& search) {
  std::set<ValueId> found;
  for (const AttentionGroup& group : search.groups) found.insert(group.consumers.begin(), group.consumers.end());
  return found;
}

/// By node: whether it is a member, or one of the sums, of a group.
NodeMap<bool> in_groups(const Graph& graph, const AttentionSearch& search) {
  NodeMap<bool> found(graph, false);
  for (const AttentionGroup& group : search.groups)
    for (const auto& [id, dims] : group.dims) found[id] = true;
  return found;
}

/// Whether every copied product of a recomputation ended up inside a group.
bool all_inside(const Graph& graph, const NodeMap<bool>& grouped, const std::vector<ValueId>& copies) {
  return std::all_of(copies.begin(), copies.end(),
                     [&](ValueId id) { return !graph[id].op->as<Contraction>() || grouped[id]; });
}

}  // namespace

AttentionSearch find_attention(const Graph& graph, const AttentionSearchOptions& options) {
  return FusionSearch(AttentionSubject(graph), options).run();
}

std::optional<MemberOperand> member_operand(const Graph& graph, const AttentionGroup& group, ValueId consumer) {
  std::optional<MemberOperand> found;
  for (int k = 0; k < 2; ++k) {
    ValueId id = graph[consumer].operands[k];
    AffineIndex index = identity_index(graph[id].type.rank());
    bool direct = true;
    while (direct && is_alias(graph[id])) {
      const IndexMap map = graph[id].op->as<View>()->map(graph, graph[id]);
      direct = !map.reshape;
      if (direct) index = through_view(map, index);
      id = graph[id].operands[0];
    }
    const auto member = group.dims.find(id);
    if (member == group.dims.end()) continue;
    if (!direct || found) return std::nullopt;
    MemberOperand operand{.operand = k, .member = id, .dims = {}};
    const Shape& shape = graph[graph[consumer].operands[k]].type.shape;
    operand.dims.assign(static_cast<std::size_t>(shape.rank()), -1);
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (member->second[i] < 0) continue;
      const AffineComponent& c = index[i];
      if (!c.is_plain() || shape[c.dim] != group.domain[member->second[i]]) return std::nullopt;
      operand.dims[c.dim] = member->second[i];
    }
    for (int i = 0; i < shape.rank(); ++i)
      if (operand.dims[i] < 0 && !shape[i].is(1)) return std::nullopt;
    found = std::move(operand);
  }
  return found;
}

Graph attention_sums(const Graph& graph, const AttentionSearchOptions& options) {
  std::optional<std::set<ValueId>> results;
  const auto is_result = [&](ValueId product) {
    if (!results) results = consumers_of(find_attention(graph, options));
    return results->contains(product);
  };
  return own_results(sums_from_results(graph, is_result, *options.delta));
}

Graph recompute_scores(Graph graph, const AttentionSearchOptions& options) {
  const AttentionSubject subject(graph);
  const AttentionSearch forward = FusionSearch(subject, options).run();
  std::vector<Recomputation> wanted;
  for (const AttentionGroup& group : forward.groups) {
    Recomputation late = LateReaders(graph, subject, group).find();
    if (!late.readers.empty()) wanted.push_back(std::move(late));
  }
  while (!wanted.empty()) {
    std::vector<std::vector<ValueId>> copies;
    Graph result = recompute(graph, wanted, &copies);
    const NodeMap<bool> grouped = in_groups(result, find_attention(result, options));
    std::vector<Recomputation> good;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (all_inside(result, grouped, copies[i])) good.push_back(wanted[i]);
    if (good.size() == wanted.size()) return result;
    wanted = std::move(good);
  }
  return graph;
}

Graph recompute_attention(Graph graph, const AttentionSearchOptions& options) {
  if (options.delta) graph = attention_sums(graph, options);
  return recompute_scores(std::move(graph), options);
}

}  // namespace lathe
