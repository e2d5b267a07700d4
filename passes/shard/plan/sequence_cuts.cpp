#include "passes/shard/plan/sequence_cuts.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"
#include "passes/shard/plan/factors.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// An operand of a node: the reader, and the operand's position.
struct Edge {
  ValueId reader;
  int operand;
  auto operator<=>(const Edge&) const = default;
};

/// Where a graph is cut: operands that are read whole, and results that are computed whole, each with the reason.
struct Marks {
  std::map<Edge, std::string> reads;
  std::map<ValueId, std::string> results;
};

/// One sequence of a graph: the values that have it twice, and the places to cut it.
class Sequence {
 public:
  Sequence(const Graph& graph, const FactoredGraph& factored, std::set<Factor> of_name)
      : graph_(graph), factored_(factored), factors_(std::move(of_name)), dims_(graph) {
    const auto is_of_name = [this](Factor factor) { return factors_.contains(factor); };
    for (const ValueId id : all_values(graph))
      for (int d = 0; d < graph[id].type.rank(); ++d)
        if (std::ranges::any_of(factored.factors.resolve(factored.dim(id, d)), is_of_name)) dims_[id].push_back(d);
  }

  const std::vector<int>& dims(ValueId id) const { return dims_[id]; }
  /// Whether a value has it twice.
  bool meets(ValueId id) const { return dims(id).size() > 1; }
  /// Whether there is such a value. If a parameter has the dim twice, it is not a sequence.
  bool is_one() const {
    bool found = false;
    for (const ValueId id : all_values(graph_)) {
      const auto& op = graph_[id].op;
      if (meets(id) && (op == &ops::parameter || op == &ops::state)) return false;
      found = found || meets(id);
    }
    return found;
  }
  const Dim& size() const { return factored_.factors.size(*factors_.begin()); }

  /// Returns every edge between values that have it twice and values that have it once.
  Marks borders() const {
    Marks marks;
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const auto meets_here = [this](ValueId operand) { return meets(operand); };
      if (!meets(id) && std::ranges::none_of(node.operands, meets_here)) continue;
      const std::string why = fmt::format("{} at {} has {} twice, of which it splits one", node.op->name.value,
                                          node.loc.to_string(), size().to_string());
      for (int i = 0; i < static_cast<int>(node.operands.size()); ++i)
        if (dims(node.operands[i]).size() == 1) marks.reads[{id, i}] = why;
      if (dims(id).size() == 1) marks.results[id] = why;
    }
    return marks;
  }

  /// Marks nodes that take a part of it, or compute it from something else: they need the whole.
  void mark_blocked(Marks& marks) const {
    for (const Blocked& blocked : factored_.blocked) {
      if (dims(blocked.value).size() != 1 || dims(blocked.value)[0] != blocked.dim) continue;
      const std::string why = fmt::format("{} at {} takes all of it: {}", graph_[blocked.node].op->name.value,
                                          graph_[blocked.node].loc.to_string(), blocked.why);
      if (dims(blocked.node).size() == 1) marks.results[blocked.node] = why;
      const auto& operands = graph_[blocked.node].operands;
      for (int i = 0; i < static_cast<int>(operands.size()); ++i)
        if (operands[i] == blocked.value) marks.reads[{blocked.node, i}] = why;
    }
  }

 private:
  const Graph& graph_;
  const FactoredGraph& factored_;
  std::set<Factor> factors_;
  NodeMap<std::vector<int>> dims_;  ///< by node: the dims that hold it
};

/// Whether a node views or copies its operand's elements and is not a cut.
bool moves(const CutGraph& graph, ValueId id) {
  const auto& op = graph.graph[id].op;
  return op->as<View>() || (op == &ops::contiguous && !graph.cuts.contains(id));
}

/// Rewrites a graph with its cuts. Values that are read whole are gathered where they have the fewest bytes, before a
/// view that repeats them; values that depend on no argument are recomputed. `each_edge` gives every edge its own
/// cut.
class Cutter {
 public:
  Cutter(const CutGraph& given, const Sequence& sequence, const Marks& marks, bool each_edge)
      : given_(given),
        graph_(given.graph),
        sequence_(sequence),
        marks_(marks),
        each_edge_(each_edge),
        now_(given.graph),
        is_source_(given.graph) {}

  CutGraph run() {
    result_.graph.name = graph_.name;
    result_.graph.checks = graph_.checks;
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      is_source_[id] = !node.op->as<Argument>() &&
                       std::ranges::all_of(node.operands, [this](ValueId operand) { return is_source_[operand]; });
      Node copy = node;
      for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
        const ValueId operand = node.operands[i];
        const auto mark = marks_.reads.find({id, i});
        copy.operands[i] = mark == marks_.reads.end() ? now(operand) : whole_of(operand, mark->second);
      }
      now_[id] = push(std::move(copy));
      if (const auto cut = given_.cuts.find(id); cut != given_.cuts.end())
        result_.cuts.insert({now(id), cut->second});
      if (marks_.results.contains(id)) {
        made_.insert({id, now(id)});
        now_[id] = cut(now(id), {Cut::Kind::part, sequence_.dims(id)[0], {}});
      }
    }
    for (const Output& output : graph_.outputs) result_.graph.outputs.push_back({output.name, now(output.value)});
    for (const Update& update : graph_.updates)
      result_.graph.updates.push_back({now(update.state), now(update.value)});
    return std::move(result_);
  }

  /// Return a value of the graph in the new graph: as its readers see it, and as it is computed.
  ValueId now(ValueId id) const { return now_[id]; }
  ValueId made(ValueId id) const {
    const auto found = made_.find(id);
    return found == made_.end() ? now(id) : found->second;
  }

 private:
  ValueId push(Node node) {
    result_.graph.nodes.push_back(std::move(node));
    return {result_.graph.size() - 1};
  }
  ValueId cut(ValueId of, Cut cut) {
    Node node;
    node.op = &ops::contiguous;
    node.operands.push_back(of);
    node.type = TensorType::contiguous(result_.graph[of].type.dtype, result_.graph[of].type.shape);
    node.loc = result_.graph[of].loc;
    const ValueId id = push(std::move(node));
    result_.cuts.insert({id, std::move(cut)});
    return id;
  }

  bool goes_before(ValueId id) const {
    const Node& node = graph_[id];
    if (!moves(given_, id)) return false;
    const ValueId operand = node.operands[0];
    const auto of_operand = graph_[operand].type.shape.numel().unnamed();
    const auto ratio = node.type.shape.numel().unnamed().divided_by(of_operand);
    return sequence_.dims(operand).size() == 1 && ratio && ratio->value();
  }

  ValueId whole_of(ValueId id, const std::string& why) {
    if (sequence_.dims(id).empty()) return now(id);
    if (each_edge_) return cut(now(id), {Cut::Kind::gather, sequence_.dims(id)[0], why});
    if (made_.contains(id)) return made_.at(id);
    if (const auto known = whole_.find(id); known != whole_.end()) return known->second;
    ValueId whole;
    if (is_source_[id] || goes_before(id)) {
      Node copy = graph_[id];
      for (ValueId& operand : copy.operands) operand = whole_of(operand, why);
      whole = push(std::move(copy));
    } else {
      whole = cut(now(id), {Cut::Kind::gather, sequence_.dims(id)[0], why});
    }
    whole_.insert_or_assign(id, whole);
    return whole;
  }

  const CutGraph& given_;
  const Graph& graph_;
  const Sequence& sequence_;
  const Marks& marks_;
  bool each_edge_;
  NodeMap<ValueId> now_;
  NodeMap<bool> is_source_;
  std::map<ValueId, ValueId> made_, whole_;
  CutGraph result_;
};

/// Decides which dims of the values that have a sequence twice are those of queries, and what is cut for the others.
class KeySide {
 public:
  KeySide(const CutGraph& given, const Sequence& sequence, const Marks& borders)
      : given_(given),
        graph_(given.graph),
        sequence_(sequence),
        borders_(borders),
        cutter_(given, sequence, borders, true),
        apart_(cutter_.run()),
        factored_(factor_dims(apart_.graph, apart_.cuts)),
        users_(graph_) {
    find_folded();
    for (const ValueId id : all_values(graph_))
      if (sequence_.meets(id)) choose(id);
  }

  Marks marks() const {
    Marks marks;
    for (const auto& [edge, why] : borders_.reads) {
      const Node& reader = apart_.graph[cutter_.made(edge.reader)];
      const ValueId read = reader.operands[edge.operand];
      if (is_key(kind_of(read, apart_.cuts.at(read).dim))) marks.reads[edge] = why;
    }
    for (const auto& [id, why] : borders_.results)
      if (is_key(kind_of(cutter_.made(id), sequence_.dims(id)[0]))) marks.results[best_result(id)] = why;
    return marks;
  }

 private:
  /// Returns the factor of a dim in the graph that is cut at all borders; nothing if ops have split the dim.
  std::optional<Factor> kind_of(ValueId id, int dim) const {
    for (const Factor factor : factored_.factors.resolve(factored_.dim(id, dim)))
      if (factored_.factors.size(factor) == sequence_.size()) return factor;
    return std::nullopt;
  }
  bool is_key(const std::optional<Factor>& kind) const { return kind && keys_.contains(*kind); }

  void find_folded() {
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      if (!node.op->as<Reduce>() || !sequence_.meets(node.operands[0])) continue;
      const int rank = graph_[node.operands[0]].type.rank();
      for (const int d : rules::normalize_axes(node.attrs.get<std::vector<std::int64_t>>("dims"), rank))
        if (const auto kind = kind_of(cutter_.now(node.operands[0]), d)) folded_.insert(*kind);
    }
  }

  void choose(ValueId id) {
    std::vector<Factor> kinds;
    for (const int d : sequence_.dims(id))
      if (const auto kind = kind_of(cutter_.now(id), d)) kinds.push_back(*kind);
    std::ranges::stable_sort(kinds, {}, [this](Factor kind) { return folded_.contains(kind); });
    if (std::ranges::none_of(kinds, [this](Factor kind) { return queries_.contains(kind); })) {
      const auto open = std::ranges::find_if(kinds, [this](Factor kind) { return !keys_.contains(kind); });
      if (open != kinds.end()) queries_.insert(*open);
    }
    for (const Factor kind : kinds)
      if (!queries_.contains(kind)) keys_.insert(kind);
  }

  /// Returns the value to take a shard of, instead of one that is computed whole: the last value that depends on it
  /// alone, through views and sums, and has no more elements. A gradient of repeated heads is summed over them first.
  ValueId best_result(ValueId id) const {
    ValueId best = id;
    for (ValueId at = id; users_[at].size() == 1;) {
      const ValueId next = users_[at][0];
      const Node& node = graph_[next];
      const bool sums = node.op == &ops::sum && sequence_.dims(next).size() == 1;
      if (!(sums || moves(given_, next)) || sequence_.dims(next).size() != 1) break;
      const auto ratio = graph_[best].type.shape.numel().unnamed().divided_by(node.type.shape.numel().unnamed());
      if (ratio && ratio->value() && *ratio->value() > 1) best = next;
      at = next;
    }
    return best;
  }

  const CutGraph& given_;
  const Graph& graph_;
  const Sequence& sequence_;
  const Marks& borders_;
  Cutter cutter_;
  CutGraph apart_;
  FactoredGraph factored_;
  Users users_;  ///< of the given graph
  std::set<Factor> folded_, queries_, keys_;
};

/// Returns the factors of the dims with a name: one size, and as many factors as ops keep separate.
std::set<Factor> factors_named(const Graph& graph, const FactoredGraph& factored, const std::string& name) {
  std::set<Factor> found;
  for (const ValueId id : all_values(graph))
    for (int d = 0; d < graph[id].type.rank(); ++d)
      if (graph[id].type.shape[d].name() == name) {
        const FactorList list = factored.factors.resolve(factored.dim(id, d));
        if (!list.empty()) found.insert(list.front());
      }
  return found;
}

}  // namespace

CutGraph cut_sequences(const Graph& graph, std::span<const Split> splits) {
  CutGraph result{graph, {}};
  std::set<std::string> names;
  for (const Split& split : splits) names.insert(split.dim);
  for (const std::string& name : names) {
    const FactoredGraph factored = factor_dims(result.graph, result.cuts);
    const Sequence sequence(result.graph, factored, factors_named(result.graph, factored, name));
    if (!sequence.is_one()) continue;
    const Marks borders = sequence.borders();
    Marks marks = KeySide(result, sequence, borders).marks();
    sequence.mark_blocked(marks);
    result = Cutter(result, sequence, marks, false).run();
  }
  return result;
}

}  // namespace lathe::shard
