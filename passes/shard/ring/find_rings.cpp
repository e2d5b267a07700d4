#include "passes/shard/ring/find_rings.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/ops/collectives.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/constants.h"
#include "passes/fusion/attention/softmax_sums.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/order/dependence.h"
#include "passes/shard/plan/factors.h"
#include "passes/shard/plan/sequence_cuts.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// Gathers over an axis whose results have the same dim of keys.
struct GatheredDim {
  std::string axis;
  Factor factor;
  auto operator<=>(const GatheredDim&) const = default;
};

/// How a node without keys reads a value with keys.
enum class Exit { maximum, sum, product, scatter, other };

/// Finds all attentions with one dim of keys.
class RingFinder {
 public:
  RingFinder(const Graph& graph, const Dependence& dependence, MeshAxis axis, std::shared_ptr<const KeyDims> keys,
             const std::vector<ValueId>& gathers)
      : graph_(graph),
        dependence_(dependence),
        axis_(std::move(axis)),
        keys_(std::move(keys)),
        part_(graph),
        made_(graph) {
    for (const ValueId id : all_values(graph)) part_[id] = id;
    for (const ValueId id : gathers) made_[id] = true;
    for (const ValueId id : all_values(graph))
      for (const ValueId operand : graph[id].operands)
        if (made_[operand]) {
          unite(id, operand);
          made_[id] = made_[id] || keys_->has(id);
        }
    for (const ValueId id : gathers) gathers_of_[part(id)].push_back(id);
  }

  void run(RingSearch& found) {
    for (const auto& [root, gathers] : gathers_of_) {
      Ring ring{
          .axis = axis_, .keys = keys_, .gathers = gathers, .inside = {}, .softmaxes = {}, .results = {}, .late = {}};
      ring.inside = NodeMap<bool>(graph_);
      std::vector<ValueId> exits;
      for (const ValueId id : all_values(graph_)) {
        if (part(id) != root) continue;
        ring.inside[id] = made_[id];
        if (!made_[id] && reads_keys(id)) exits.push_back(id);
      }
      const auto maximum = std::ranges::find_if(exits, [&](ValueId id) { return exit_of(id) == Exit::maximum; });
      if (maximum == exits.end()) continue;  // not an attention
      why_.clear();
      if (complete(ring, exits))
        found.rings.push_back(std::move(ring));
      else
        found.gathered.push_back({graph_[*maximum].loc, why_});
    }
  }

 private:
  ValueId part(ValueId id) const {
    while (part_[id] != id) id = part_[id];
    return id;
  }
  void unite(ValueId a, ValueId b) {
    const ValueId x = part(a), y = part(b);
    part_[std::max(x, y)] = std::min(x, y);
  }

  bool refuse(ValueId at, std::string_view why) {
    why_ = fmt::format("{} at {} {}", graph_[at].op->name.value, graph_[at].loc.to_string(), why);
    return false;
  }

  bool reads_keys(ValueId id) const {
    return std::ranges::any_of(graph_[id].operands, [&](ValueId operand) { return made_[operand]; });
  }

  Exit exit_of(ValueId id) const {
    const Node& node = graph_[id];
    const ValueId operand = node.operands[0];
    if (node.op->as<Contraction>()) return Exit::product;
    if (node.op == &ops::reduce_scatter && axis_of(node) == axis_ && node.attrs.get<Dim>("outer").is(1) &&
        is_along(operand, rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), graph_[operand].type.rank())))
      return Exit::scatter;
    if (!node.op->as<Reduce>()) return Exit::other;
    if (reduces_by(node, ScalarOp::add)) return Exit::sum;
    const bool along_keys = reduced_dims(graph_, node) == std::vector<int>{keys_->of(operand)};
    return reduces_by(node, ScalarOp::max) && along_keys ? Exit::maximum : Exit::other;
  }

  /// Whether dim d of the value is the dim of keys and nothing else.
  bool is_along(ValueId id, int d) const {
    return keys_->of(id) == d && graph_[id].type.shape[d].unnamed() == keys_->keys;
  }

  bool complete(Ring& ring, const std::vector<ValueId>& exits) {
    for (const ValueId id : all_values(graph_))
      if (ring.is_inside(id) && !can_be_parted(ring, id)) return false;
    for (const ValueId id : graph_.results())
      if (ring.is_inside(id)) return refuse(id, "is a result with all keys");
    for (const ValueId id : exits)
      if (exit_of(id) == Exit::maximum && !add_softmax(ring, id)) return false;
    std::set<ValueId> sums;
    for (const RingSoftmax& softmax : ring.softmaxes) sums.insert({softmax.maximum, softmax.sum});
    for (const ValueId id : exits) {
      if (sums.contains(id)) continue;
      if (exit_of(id) == Exit::other) return refuse(id, "takes all keys at once");
      if (exit_of(id) != Exit::product || !add_result(ring, id)) ring.late.push_back(id);
    }
    if (ring.results.empty()) return refuse(ring.softmaxes[0].maximum, "is of weights that no product sums");
    return is_one_round(ring);
  }

  /// Whether the computation for the keys of one process is the computation for all keys, restricted to one part.
  bool can_be_parted(const Ring& ring, ValueId id) {
    const Node& node = graph_[id];
    if (std::ranges::find(ring.gathers, id) != ring.gathers.end()) {
      if (node.attrs.get<Dim>("outer").is(1)) return true;
      return refuse(id, "gathers keys that several axes split");
    }
    if (node.op->as<Custom>() && node.op != &ops::random_uniform_at)
      return refuse(id, "is no op that goes by parts of keys");
    if (node.op == &ops::slice &&
        rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank()) == keys_->of(id))
      return refuse(id, "takes some of the keys");
    return true;
  }

  /// Returns the value behind views and a maximum with a number (a floor).
  ValueId without_floor(ValueId id) const {
    const ValueId own = through_aliases(graph_, id);
    const Node& node = graph_[own];
    if (node.op != &ops::maximum) return own;
    for (const std::size_t side : {0U, 1U})
      if (is_splat(graph_[through_aliases(graph_, node.operands[1 - side])]))
        return through_aliases(graph_, node.operands[side]);
    return own;
  }

  /// Whether the value has one number per row of the scores and is `of`, possibly with a floor.
  bool is_of_rows(ValueId id, ValueId of, ValueId scores) const {
    Shape rows = graph_[scores].type.shape;
    rows.set(keys_->of(scores), Dim(1));
    return without_floor(id) == of && graph_[id].type.shape.looks_like(rows);
  }

  bool add_softmax(Ring& ring, ValueId maximum) {
    const ValueId scores = graph_[maximum].operands[0];
    const DType dtype = graph_[scores].type.dtype;
    if (dtype != f32 && dtype != f64) return refuse(maximum, "is neither of f32 nor of f64");
    if (!is_along(scores, keys_->of(scores))) return refuse(maximum, "folds more than keys");
    RingSoftmax softmax{
        .scores = scores, .maximum = maximum, .difference = {}, .exponentials = {}, .sum = {}, .weights = {}};
    for (ValueId id = maximum; id.index < graph_.size(); ++id.index) {
      const Node& node = graph_[id];
      const auto reads = [&](ValueId value) { return value.valid() && node.operands[0] == value; };
      if (node.op->as<Argument>() || node.operands.empty()) continue;
      if (node.op == &ops::sub && reads(scores) && is_of_rows(node.operands[1], maximum, scores))
        softmax.difference = id;
      else if (is_exponential(node) && reads(softmax.difference))
        softmax.exponentials = id;
      else if (reads(softmax.exponentials) && reduces_by(node, ScalarOp::add) && !softmax.sum.valid() &&
               reduced_dims(graph_, node) == std::vector<int>{keys_->of(scores)})
        softmax.sum = id;
      else if (node.op == &ops::div && reads(softmax.exponentials) &&
               is_of_rows(node.operands[1], softmax.sum, scores))
        softmax.weights = id;
    }
    if (!softmax.weights.valid()) return refuse(maximum, "is of no softmax along the keys");
    const auto results = graph_.results();
    if (std::ranges::find(results, maximum) != results.end()) return refuse(maximum, "is a result");
    ring.softmaxes.push_back(softmax);
    return true;
  }

  bool is_made_of(ValueId id, const RingSoftmax& softmax) const {
    return dependence_.needs(id, softmax.exponentials);
  }

  /// Whether a value is the weights, or linear in them element by element.
  bool is_linear(ValueId id, const RingSoftmax& softmax) const {
    const Node& node = graph_[id];
    if (id == softmax.weights) return true;
    const auto made = [&](std::size_t i) { return is_made_of(node.operands[i], softmax); };
    const auto linear = [&](std::size_t i) { return is_linear(node.operands[i], softmax); };
    const auto& op = node.op;
    if (op->as<View>() || op == &ops::cast || op == &ops::contiguous || op == &ops::neg) return linear(0);
    if (op == &ops::mul) return made(0) ? !made(1) && linear(0) : linear(1);
    if (op == &ops::div) return !made(1) && linear(0);
    if (op != &ops::where || made(0)) return false;
    const auto is_zero = [&](std::size_t i) {
      const Node& other = graph_[through_aliases(graph_, node.operands[i])];
      return is_splat(other) && constant_values(other)[0] == 0;
    };
    return made(1) ? is_zero(2) && linear(1) : is_zero(1) && linear(2);
  }

  /// Adds a matmul that sums over keys a value that is linear in the weights of a softmax; returns whether it is one.
  bool add_result(Ring& ring, ValueId product) {
    const Node& node = graph_[product];
    for (int s = 0; s < static_cast<int>(ring.softmaxes.size()); ++s) {
      const RingSoftmax& softmax = ring.softmaxes[s];
      for (const int k : {0, 1}) {
        const ValueId own = node.operands[k], other = node.operands[1 - k];
        if (!is_made_of(own, softmax) || is_made_of(other, softmax) || !is_linear(own, softmax)) continue;
        const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
        if (roles.contracted().size() != 1) return false;
        ring.results.push_back({product, k, s});
        return true;
      }
    }
    return false;
  }

  /// Whether blocks need nothing that is known only after all of them. Inputs of the softmax and its results must
  /// need no sum over keys except those of the softmax. Gradients must need none except those of results.
  bool is_one_round(const Ring& ring) {
    std::vector<ValueId> early, scattered = ring.late;
    std::set<std::pair<ValueId, ValueId>> known;  // readers of the maximum or the sum
    for (const RingSoftmax& softmax : ring.softmaxes) {
      early.insert(early.end(), {softmax.maximum, softmax.sum});
      known.insert({softmax.difference, graph_[softmax.difference].operands[1]});
      known.insert({softmax.weights, graph_[softmax.weights].operands[1]});
    }
    for (const ValueId id : all_values(graph_)) {
      const bool last = std::ranges::find(ring.late, id) != ring.late.end();
      const bool result = std::ranges::any_of(ring.results, [&](const RingResult& r) { return r.product == id; });
      if (!ring.is_inside(id) && !last && !result) continue;
      const bool in_forward = result || is_read_by_result(ring, id);
      for (const ValueId operand : graph_[id].operands) {
        if (ring.is_inside(operand) || known.contains({id, operand})) continue;
        const auto by_blocks = [&](ValueId value) { return goes_by_blocks(graph_, *keys_, value); };
        for (const ValueId source : ancestors(graph_, operand, by_blocks))
          if (keys_->has(source) && !by_blocks(source) && !is_along(source, keys_->of(source)))
            return refuse(source, "joins keys with another dim");
        if (dependence_.needs_any(operand, ring.late)) return refuse(id, "needs a sum over all keys of the gradient");
        if (in_forward && dependence_.needs_any(operand, early)) return refuse(id, "needs a sum over all keys");
      }
    }
    return true;
  }

  bool is_read_by_result(const Ring& ring, ValueId id) const {
    return std::ranges::any_of(ring.results, [&](const RingResult& r) { return dependence_.needs(r.product, id); });
  }

  const Graph& graph_;
  const Dependence& dependence_;
  MeshAxis axis_;
  std::shared_ptr<const KeyDims> keys_;
  NodeMap<ValueId> part_;  ///< by node: another one of the same attention, with a smaller number
  NodeMap<bool> made_;     ///< by node: it has keys that are gathered
  std::map<ValueId, std::vector<ValueId>> gathers_of_;
  std::string why_;
};

/// Returns the dims along which factor `factor` runs; null if a value has it twice.
std::shared_ptr<const KeyDims> dims_of(const Graph& graph, const FactoredGraph& factored, Factor factor) {
  const auto dims = std::make_shared<KeyDims>();
  dims->keys = factored.factors.size(factor).unnamed();
  dims->dim = NodeMap<int>(graph, -1);
  for (const ValueId id : all_values(graph))
    for (int d = 0; d < graph[id].type.rank(); ++d) {
      const FactorList list = factored.factors.resolve(factored.dim(id, d));
      const auto times = std::ranges::count(list, factor);
      if (times == 0) continue;
      if (times > 1 || dims->has(id)) return nullptr;
      dims->dim[id] = d;
    }
  return dims;
}

/// Whether a matmul reads the value, also through views and copies.
bool is_multiplied(const Graph& graph, const Users& users, ValueId id) {
  return std::ranges::any_of(users[id], [&](ValueId user) {
    const auto& op = graph[user].op;
    const bool shows = op->as<View>() || op == &ops::contiguous || op == &ops::cast;
    return op->as<Contraction>() || (shows && is_multiplied(graph, users, user));
  });
}

/// Whether processes hold the value as shards between steps, as parameters.
bool is_held(const Graph& graph, ValueId id) {
  while (graph[id].op->as<View>() || graph[id].op == &ops::contiguous || graph[id].op == &ops::cast)
    id = graph[id].operands[0];
  return graph[id].op == &ops::parameter || graph[id].op == &ops::state;
}

}  // namespace

bool goes_by_blocks(const Graph& graph, const KeyDims& keys, ValueId id) {
  const Node& node = graph[id];
  if (!keys.has(id) || node.op->as<Argument>()) return false;
  if (node.op == &ops::slice)
    return rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank()) != keys.of(id);
  if (node.op == &ops::iota) {
    const bool along = rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank()) == keys.of(id);
    return !along || node.type.shape[keys.of(id)].unnamed() == keys.keys;
  }
  return !node.op->as<Custom>() || is_splat(node) || node.op == &ops::random_uniform_at;
}

RingSearch find_rings(const Graph& graph) {
  RingSearch found;
  const auto is_gather = [&](ValueId id) { return graph[id].op == &ops::all_gather && axis_of(graph[id]).ranks > 1; };
  if (std::ranges::none_of(graph.nodes, [](const Node& node) { return node.op == &ops::all_gather; })) return found;
  const FactoredGraph factored = factor_dims(graph, {});
  const Users users(graph);
  std::map<GatheredDim, std::vector<ValueId>> gathers;
  for (const ValueId id : all_values(graph)) {
    if (!is_gather(id) || is_held(graph, graph[id].operands[0])) continue;
    const int d = rules::normalize_axis(graph[id].attrs.get<std::int64_t>("dim"), graph[id].type.rank());
    const FactorList list = factored.factors.resolve(factored.dim(id, d));
    if (list.size() == 1)
      gathers[{axis_of(graph[id]).name, list[0]}].push_back(id);
    else if (is_multiplied(graph, users, id))
      found.gathered.push_back({graph[id].loc, fmt::format("all_gather at {} gathers keys that several axes split",
                                                           graph[id].loc.to_string())});
  }
  const Dependence dependence(graph);
  for (const auto& [dim, ids] : gathers)
    if (auto keys = dims_of(graph, factored, dim.factor))
      RingFinder(graph, dependence, axis_of(graph[ids[0]]), std::move(keys), ids).run(found);
  std::ranges::stable_sort(found.rings, {}, [](const Ring& ring) { return ring.gathers[0]; });
  return found;
}

}  // namespace lathe::shard
