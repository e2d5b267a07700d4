#include "passes/fusion/attention.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/list.h"
#include "passes/fusion/attention_cost.h"
#include "passes/fusion/prepare.h"
#include "passes/fusion/result_dots.h"
#include "passes/fusion/softmax_sums.h"
#include "passes/recompute.h"

namespace lathe {

using namespace ir;

namespace {

bool is_point_wise(const Node& node) { return node.op->as<Elementwise>() || node.op == &ops::contiguous; }

class Search {
 public:
  Search(const AttentionSubject& subject, const AttentionOptions& options)
      : subject_(subject), graph_(subject.graph), options_(options), group_of_(graph_.nodes.size(), -1) {}

  AttentionSearch run() {
    for (const ValueId id : all_values(graph_))
      if (graph_[id].op->as<Contraction>() && group_of(id) < 0 && leads_to_exp(id)) grow(id);
    for (const ValueId id : all_values(graph_))
      if (sums_exp(id)) found_.reports.push_back(report(id));
    return std::move(found_);
  }

 private:
  int& group_of(ValueId id) { return group_of_[static_cast<std::size_t>(id.index)]; }

  /// Whether an exp stands behind point-wise nodes and reductions of the product.
  bool leads_to_exp(ValueId scores) const {
    std::vector<ValueId> work = {scores};
    for (std::size_t i = 0; i < work.size() && i < 64; ++i)
      for (const ValueId user : subject_.users[static_cast<std::size_t>(work[i].index)]) {
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
      AttentionGrower grower(subject_, scores, *columns, options_.sums);
      const auto group = grower.run();
      const auto cost = group ? attention_cost(subject_, *group, options_.costs) : std::nullopt;
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

  /// Whether a product of the model itself, not of its gradient, reads the exp or what is made of it point-wise.
  bool weighs(ValueId exp) const {
    std::vector<ValueId> work = {exp};
    std::set<ValueId> seen = {exp};
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      for (const ValueId user : subject_.users[static_cast<std::size_t>(id.index)]) {
        const Node& node = graph_[user];
        if (node.loc.gradient()) continue;
        if (node.op->as<Contraction>()) return true;
        if ((is_point_wise(node) || node.op->as<View>()) && seen.insert(user).second) work.push_back(user);
      }
    }
    return false;
  }

  AttentionReport report(ValueId softmax) {
    AttentionReport found{.softmax = softmax,
                          .attention = weighs(through_aliases(graph_, graph_[softmax].operands[0])),
                          .fused = group_of(softmax) >= 0,
                          .at = softmax,
                          .reason = ""};
    if (found.fused) return found;
    ValueId source = through_aliases(graph_, graph_[softmax].operands[0]);
    while (is_point_wise(graph_[source])) {
      // The scores are the operand that spans most elements: the first of the widest.
      ValueId widest = graph_[source].operands[0];
      for (const ValueId operand : graph_[source].operands) {
        const Node &one = graph_[operand], &best = graph_[widest];
        if (one.type.rank() > best.type.rank() || (!is_float(best.type.dtype) && is_float(one.type.dtype)))
          widest = operand;
      }
      source = through_aliases(graph_, widest);
    }
    found.at = source;
    if (!graph_[source].op->as<Contraction>()) {
      found.reason = "its scores come from no product of matrices";
    } else if (const auto at = rejections_.find(source); at != rejections_.end()) {
      found.at = at->second.at;
      found.reason = at->second.reason;
    } else {
      found.reason = "its scores belong to another attention";
    }
    return found;
  }

  const AttentionSubject& subject_;
  const Graph& graph_;
  AttentionOptions options_;
  std::vector<int> group_of_;
  std::map<ValueId, AttentionGrower::Rejection> rejections_;  // the first, by the product that makes the scores
  AttentionSearch found_;
};

/// The members that readers outside the group want, with everything between that stands in no memory.
class LateReaders {
 public:
  LateReaders(const Graph& graph, const AttentionSubject& subject, const AttentionGroup& group)
      : graph_(graph), subject_(subject), group_(group), inside_(graph.nodes.size(), false) {
    for (const auto* ids : {&group.members, &group.consumers})
      for (const ValueId id : *ids) inside_[static_cast<std::size_t>(id.index)] = true;
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
  /// The nodes outside that read a member, directly or through what stands in no memory; in order.
  std::set<ValueId> outer_readers() const {
    std::set<ValueId> readers;
    std::vector<ValueId> work = group_.members;
    std::set<ValueId> shown;
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      for (const ValueId user : subject_.users[static_cast<std::size_t>(id.index)]) {
        if (inside_[static_cast<std::size_t>(user.index)]) continue;
        if (!subject_.is_transparent(user)) {
          readers.insert(user);
        } else if (shown.insert(user).second) {
          work.push_back(user);
        }
      }
    }
    return readers;
  }

  /// Whether `id` is, or shows, a member over rows and columns; notes what must be copied for it.
  bool copy(ValueId id) {
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
    bool wanted = false;
    if (inside_[static_cast<std::size_t>(id.index)]) {
      wanted = over_rows_and_columns(id) && !subject_.in_memory[static_cast<std::size_t>(id.index)];
      if (wanted)
        for (const ValueId operand : graph_[id].operands) copy(operand);
    } else if (subject_.is_transparent(id)) {
      for (const ValueId operand : graph_[id].operands) wanted = copy(operand) || wanted;
    }
    if (wanted) values_.insert(id);
    return known_[id] = wanted;
  }

  bool over_rows_and_columns(ValueId id) const {
    const auto at = group_.dims.find(id);
    if (at == group_.dims.end()) return false;
    const auto has = [&](int d) { return std::find(at->second.begin(), at->second.end(), d) != at->second.end(); };
    return has(group_.row) && has(group_.domain.rank() - 1);
  }

  const Graph& graph_;
  const AttentionSubject& subject_;
  const AttentionGroup& group_;
  std::vector<bool> inside_;
  std::map<ValueId, bool> known_;
  std::set<ValueId> values_;
  Recomputation found_;
};

std::set<ValueId> consumers_of(const AttentionSearch& search) {
  std::set<ValueId> found;
  for (const AttentionGroup& group : search.groups) found.insert(group.consumers.begin(), group.consumers.end());
  return found;
}

/// Whether every copied product of a recomputation ended up inside a group.
bool all_inside(const Graph& graph, const AttentionSearch& search, const std::vector<ValueId>& copies) {
  return std::all_of(copies.begin(), copies.end(), [&](ValueId id) {
    if (!graph[id].op->as<Contraction>()) return true;
    return std::any_of(search.groups.begin(), search.groups.end(),
                       [&](const AttentionGroup& group) { return group.dims.contains(id); });
  });
}

}  // namespace

AttentionSearch find_attention(const Graph& graph, const AttentionOptions& options) {
  return Search(AttentionSubject(graph), options).run();
}

std::optional<MemberOperand> member_operand(const Graph& graph, const AttentionGroup& group, ValueId consumer) {
  std::optional<MemberOperand> found;
  for (int k = 0; k < 2; ++k) {
    ValueId id = graph[consumer].operands[static_cast<std::size_t>(k)];
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
    const Shape& shape = graph[graph[consumer].operands[static_cast<std::size_t>(k)]].type.shape;
    operand.dims.assign(static_cast<std::size_t>(shape.rank()), -1);
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (member->second[i] < 0) continue;
      const AffineComponent& c = index[i];
      if (c.dim < 0 || c.scale != 1 || !c.offset.is(0) || shape[c.dim] != group.domain[member->second[i]])
        return std::nullopt;
      operand.dims[static_cast<std::size_t>(c.dim)] = member->second[i];
    }
    for (int i = 0; i < shape.rank(); ++i)
      if (operand.dims[static_cast<std::size_t>(i)] < 0 && !shape[i].is(1)) return std::nullopt;
    found = std::move(operand);
  }
  return found;
}

Graph recompute_attention(const Graph& graph, const AttentionOptions& options) {
  std::optional<std::set<ValueId>> results;
  const auto is_result = [&](ValueId product) {
    if (!results) results = consumers_of(find_attention(graph, options));
    return results->contains(product);
  };
  Graph summed = options.blocks ? own_results(sums_from_results(graph, is_result)) : graph;
  const AttentionSubject subject(summed);
  const AttentionSearch forward = Search(subject, options).run();
  std::vector<Recomputation> wanted;
  for (const AttentionGroup& group : forward.groups) {
    Recomputation late = LateReaders(summed, subject, group).find();
    if (!late.readers.empty()) wanted.push_back(std::move(late));
  }
  while (!wanted.empty()) {
    std::vector<std::vector<ValueId>> copies;
    Graph result = recompute(summed, wanted, &copies);
    const AttentionSearch search = find_attention(result, options);
    std::vector<Recomputation> good;
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (all_inside(result, search, copies[i])) good.push_back(wanted[i]);
    if (good.size() == wanted.size()) return result;
    wanted = std::move(good);
  }
  return summed;
}

}  // namespace lathe
