#include "passes/remat/checkpoint_loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/node_map.h"
#include "passes/fusion/affine.h"
#include "passes/remat/kept_carries.h"
#include "passes/remat/segment_body.h"

namespace lathe {

using namespace ir;

namespace {

/// A loop in the graph that is rewritten.
struct OldLoop {
  ValueId first;
  std::vector<ValueId> nodes;      // by result
  std::vector<ValueId> arguments;  // of the body

  OldLoop(const Graph& graph, ValueId id)
      : first(id), nodes(nodes_of_loop(graph, id)), arguments(loop_body(graph[id]).graph().arguments()) {}
};

Shape with_lead(std::initializer_list<Dim> lead, const Shape& shape) {
  Shape found{lead};
  for (const Dim& dim : shape) found.push_back(dim);
  return found;
}

/// Rewrites the pairs of one graph. Nodes are copied as they are, for equal nodes of a prepared graph must not become
/// one: attention weights that are computed again.
class LoopRewriter {
 public:
  LoopRewriter(const Graph& from, std::span<const LoopSegments* const> pairs)
      : from_(from), pairs_(pairs.begin(), pairs.end()), now_(from), dropped_(from, false) {
    for (const LoopSegments* pair : pairs_) {
      const std::vector<ValueId> nodes = nodes_of_loop(from, pair->pair.saver);
      for (const int result : pair->pair.again) dropped_[nodes[at(result)]] = true;
    }
  }

  Graph run() {
    to_.name = from_.name;
    to_.checks = from_.checks;
    for (const ValueId id : all_values(from_)) {
      for (const LoopSegments* pair : pairs_) {
        if (pair->pair.saver == id) add_saver(*pair);
        if (pair->pair.reader == id) add_reader(*pair);
      }
      if (!now_[id].valid() && !dropped_[id]) now_[id] = copy(id);
    }
    for (const Output& output : from_.outputs) to_.outputs.push_back({output.name, result(output.value)});
    for (const Update& update : from_.updates) to_.updates.push_back({now(update.state), result(update.value)});
    return std::move(to_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  ValueId now(ValueId old) const {
    LATHE_ASSERT(now_[old].valid());
    return now_[old];
  }

  ValueId push(Node node) {
    to_.nodes.push_back(std::move(node));
    return {to_.size() - 1};
  }

  ValueId copy(ValueId id) {
    Node node = from_[id];
    for (ValueId& operand : node.operands) operand = now(operand);
    return push(std::move(node));
  }

  ValueId push_view(ValueId operand, const Shape& shape, const Location& loc, std::string name = {}) {
    const TensorType type = TensorType::contiguous(to_[operand].type.dtype, shape);
    if (!to_[operand].type.is_contiguous())
      operand = push({.op = &ops::contiguous,
                      .operands = {operand},
                      .attrs = {},
                      .type = TensorType::contiguous(type.dtype, to_[operand].type.shape),
                      .loc = loc,
                      .name = {}});
    return push({.op = &ops::view,
                 .operands = {operand},
                 .attrs = {{"shape", shape}},
                 .type = type,
                 .loc = loc,
                 .name = std::move(name)});
  }

  /// Returns the new value of a result of the graph, which is a computed node of its own.
  ValueId result(ValueId old) {
    const ValueId id = now(old);
    if (!is_alias(to_[id]) || is_alias(from_[old])) return id;
    return push({.op = &ops::contiguous,
                 .operands = {id},
                 .attrs = {},
                 .type = to_[id].type,
                 .loc = to_[id].loc,
                 .name = {}});
  }

  /// Returns a sequence as segments, [n, every, ..].
  ValueId segments(ValueId sequence, const LoopSegments& pair) {
    const auto [known, fresh] = segments_.try_emplace({sequence, pair.every});
    if (fresh) {
      const Shape& shape = to_[sequence].type.shape;
      const Dim count = *segment_count(shape[0], pair.every);
      Shape cut{count, Dim(pair.every)};
      for (int d = 1; d < shape.rank(); ++d) cut.push_back(shape[d]);
      known->second = push_view(sequence, cut, to_[sequence].loc);
    }
    return known->second;
  }

  /// The sequences and invariants of an old loop in the body of a segment.
  struct InnerLoop {
    const Node& loop;
    std::vector<int> sequences, invariants;  // by their number in the segment; -1: a result of the saver
  };

  /// Adds the operands of an old loop, apart from its carries, to a segment. `computed`: its sequences that the
  /// segment computes.
  InnerLoop add_operands(SegmentBody& segment, const OldLoop& old, const LoopSegments& pair,
                         const std::map<ValueId, int>& computed) {
    const Node& loop = from_[old.first];
    const int carries = carry_count(loop), end = carries + sequence_count(loop);
    InnerLoop inner{loop, {}, {}};
    for (int i = carries; i < static_cast<int>(old.arguments.size()); ++i) {
      const ValueId operand = loop.operands[at(i)];
      const Node& like = loop_body(loop).graph()[old.arguments[at(i)]];
      if (i >= end)
        inner.invariants.push_back(segment.invariant(now(operand), like, like.type));
      else if (computed.contains(operand))
        inner.sequences.push_back(-1);
      else
        inner.sequences.push_back(
            segment.sequence(segments(now(operand), pair), like, segment_type(like.type, pair.every)));
    }
    return inner;
  }

  static TensorType segment_type(const TensorType& element, std::int64_t every) {
    return TensorType::contiguous(element.dtype, with_lead({Dim(every)}, element.shape));
  }

  /// Adds the iterations of one segment to its body, and returns all results.
  std::vector<Value> add_inner(SegmentBody& segment, const InnerLoop& inner, std::int64_t every,
                               std::vector<Value> carries, const std::map<ValueId, Value>& computed = {}) const {
    LoopParts parts{.body = loop_body(inner.loop),
                    .trips = Dim(every),
                    .carries = std::move(carries),
                    .reverse = loop_reverse(inner.loop)};
    for (std::size_t s = 0; s < inner.sequences.size(); ++s)
      parts.sequences.push_back(inner.sequences[s] >= 0
                                    ? segment.sequence(inner.sequences[s])
                                    : computed.at(inner.loop.operands[at(carry_count(inner.loop)) + s]));
    for (const int number : inner.invariants) parts.invariants.push_back(segment.invariant(number));
    const GraphBuilder::At line(segment.builder(), inner.loop.loc);
    return loop(segment.builder(), parts);
  }

  /// Ends a segment. Adds a node of the loop over segments for each of `results`: a result of the new loop with that
  /// of the old loop, or with -1 for a checkpoint. Maps those of the old loop, and returns the new nodes.
  std::vector<ValueId> push_loop(SegmentBody& segment, const OldLoop& old, const LoopSegments& pair,
                                 std::span<const std::pair<int, int>> results) {
    const Node& like = from_[old.first];
    const Dim trips = *segment_count(loop_trips(like), pair.every);
    const std::vector<ValueId> operands = segment.operands();
    const Body body = segment.close();
    const Graph& graph = body.graph();
    const auto carries = static_cast<int>(graph.updates.size());
    std::vector<ValueId> added;
    for (const auto& [result, old_result] : results) {
      const bool is_carry = result < carries;
      const TensorType& type =
          graph[is_carry ? graph.arguments()[at(result)] : graph.outputs[at(result - carries)].value].type;
      added.push_back(
          push({.op = &ops::loop,
                .operands = operands,
                .attrs = {{"body", body},
                          {"trips", trips},
                          {"sequences", segment.sequences()},
                          {"result", static_cast<std::int64_t>(result)},
                          {"reverse", loop_reverse(like)}},
                .type = TensorType::contiguous(type.dtype, is_carry ? type.shape : with_lead({trips}, type.shape)),
                .loc = like.loc,
                .name = {}}));
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      const auto& [result, old_result] = results[r];
      if (old_result < 0) continue;
      const ValueId of = old.nodes[at(old_result)];
      now_[of] = result < carries ? added[r] : push_view(added[r], from_[of].type.shape, from_[of].loc);
      to_[now_[of]].name = from_[of].name;
    }
    return added;
  }

  /// Adds the results of an old loop that have nodes and are not dropped to a segment.
  std::vector<std::pair<int, int>> add_results(SegmentBody& segment, const OldLoop& old,
                                               std::span<const Value> inner) const {
    const Node& loop = from_[old.first];
    const Graph& body = loop_body(loop).graph();
    const int carries = carry_count(loop);
    std::vector<std::pair<int, int>> results;
    for (int r = 0; r < static_cast<int>(inner.size()); ++r) {
      if (r < carries) segment.builder().update(segment.carry(r), inner[at(r)]);
      if (!old.nodes[at(r)].valid() || dropped_[old.nodes[at(r)]]) continue;
      results.emplace_back(
          r < carries ? r : carries + segment.output(body.outputs[at(r - carries)].name, inner[at(r)]), r);
    }
    return results;
  }

  void add_saver(const LoopSegments& pair) {
    const OldLoop old(from_, pair.pair.saver);
    const Node& loop = from_[old.first];
    const std::vector<bool> stored = stored_carries(from_, pair.pair);
    if (std::ranges::find(stored, true) == stored.end()) {
      for (const ValueId id : old.nodes)
        if (id.valid() && !dropped_[id]) now_[id] = copy(id);
      return;
    }
    const Graph& body = loop_body(loop).graph();
    SegmentBody segment(body.name + ".segment");
    for (int c = 0; c < carry_count(loop); ++c)
      segment.carry(now(loop.operands[at(c)]), body[old.arguments[at(c)]], body[old.arguments[at(c)]].type);
    const InnerLoop inner = add_operands(segment, old, pair, {});
    segment.open();
    std::vector<Value> carries;
    for (int c = 0; c < carry_count(loop); ++c) carries.push_back(segment.carry(c));
    std::vector<std::pair<int, int>> results =
        add_results(segment, old, add_inner(segment, inner, pair.every, carries));
    std::size_t first = results.size();
    for (std::size_t c = 0; c < stored.size(); ++c) {
      if (!stored[c]) continue;
      const Node& carry = carries[c].node();
      const GraphBuilder::At line(segment.builder(), carry.loc);
      const Value kept = segment.builder().add(ops::contiguous, {carries[c]});
      results.emplace_back(carry_count(loop) + segment.output("checkpoint." + carry.name, kept), -1);
    }
    const std::vector<ValueId> added = push_loop(segment, old, pair, results);
    for (std::size_t c = 0; c < stored.size(); ++c)
      if (stored[c]) checkpoints_[{old.first, static_cast<int>(c)}] = added[first++];
  }

  /// Adds the operands of the saver to a segment of the reader: its checkpoints, which are the carries of its first
  /// iteration, or the stacks of all carries of the segment. Returns their numbers.
  std::vector<int> add_checkpoints(SegmentBody& segment, const OldLoop& saver, const LoopSegments& pair) {
    const Node& loop = from_[saver.first];
    std::vector<int> numbers;
    for (int c = 0; c < carry_count(loop); ++c) {
      const Node& like = loop_body(loop).graph()[saver.arguments[at(c)]];
      const auto stored = checkpoints_.find({saver.first, c});
      numbers.push_back(
          stored != checkpoints_.end()
              ? segment.sequence(stored->second, like, like.type)
              : segment.sequence(segments(now(saver.nodes[at(stack_of_carry(from_, pair.pair, c))]), pair), like,
                                 segment_type(like.type, pair.every)));
    }
    return numbers;
  }

  /// Returns the carry before the first iteration of a segment, given an operand of add_checkpoints().
  static Value first_carry(const Value& kept, const Node& like, const LoopSegments& pair, bool reverse) {
    if (kept.rank() == like.type.rank()) return kept;
    GraphBuilder& b = kept.builder();
    const GraphBuilder::At line(b, like.loc);
    const std::int64_t first = reverse ? pair.every - 1 : 0;
    return b.add(ops::contiguous, {squeeze(slice(kept, 0, first, first + 1), {0})});
  }

  void add_reader(const LoopSegments& pair) {
    const OldLoop old(from_, pair.pair.reader), saver(from_, pair.pair.saver);
    const Node &loop = from_[old.first], &saving = from_[saver.first];
    const Graph &body = loop_body(loop).graph(), &saving_body = loop_body(saving).graph();
    std::map<ValueId, int> again;
    for (const int result : pair.pair.again) again.emplace(saver.nodes[at(result)], result);
    SegmentBody segment(body.name + ".segment");
    for (int c = 0; c < carry_count(loop); ++c)
      segment.carry(now(loop.operands[at(c)]), body[old.arguments[at(c)]], body[old.arguments[at(c)]].type);
    const std::vector<int> checkpoints = add_checkpoints(segment, saver, pair);
    const InnerLoop first = add_operands(segment, saver, pair, {}), second = add_operands(segment, old, pair, again);
    segment.open();
    std::vector<Value> carries;
    for (std::size_t c = 0; c < checkpoints.size(); ++c)
      carries.push_back(
          first_carry(segment.sequence(checkpoints[c]), saving_body[saver.arguments[c]], pair, loop_reverse(saving)));
    const std::vector<Value> results = add_inner(segment, first, pair.every, std::move(carries));
    std::map<ValueId, Value> computed;
    for (const auto& [id, result] : again) computed.emplace(id, results[at(result)]);
    std::vector<Value> states;
    for (int c = 0; c < carry_count(loop); ++c) states.push_back(segment.carry(c));
    push_loop(segment, old, pair,
              add_results(segment, old, add_inner(segment, second, pair.every, std::move(states), computed)));
  }

  const Graph& from_;
  Graph to_;
  std::vector<const LoopSegments*> pairs_;
  NodeMap<ValueId> now_;
  NodeMap<bool> dropped_;
  std::map<std::pair<ValueId, std::int64_t>, ValueId> segments_;
  std::map<std::pair<ValueId, int>, ValueId> checkpoints_;  // by saver and carry: the stack of stored ones
};

/// Rewrites the pairs in `body`, or in the graph itself, after those in the bodies of its loops.
Graph rewrite(Graph graph, const std::optional<Body>& body, std::span<const LoopSegments> pairs) {
  std::vector<std::pair<Body, Body>> changed;
  for (Node& node : graph.nodes) {
    if (!is_loop(node) ||
        std::ranges::none_of(pairs, [](const LoopSegments& each) { return each.pair.body.has_value(); }))
      continue;
    const Body inner = loop_body(node);
    auto known = std::ranges::find_if(changed, [&](const auto& each) { return each.first.is_same(inner); });
    if (known == changed.end())
      known = changed.insert(changed.end(), {inner, Body(rewrite(Graph(inner.graph()), inner, pairs))});
    node.attrs.set("body", known->second);
  }
  std::vector<const LoopSegments*> here;
  for (const LoopSegments& each : pairs)
    if (each.pair.body ? body && each.pair.body->is_same(*body) : !body) here.push_back(&each);
  return here.empty() ? graph : LoopRewriter(graph, here).run();
}

}  // namespace

std::optional<Dim> segment_count(const Dim& trips, std::int64_t every) { return trips.unnamed().divided_by(every); }

Graph checkpoint_loops(const Graph& graph, std::span<const LoopSegments> pairs) {
  return rewrite(Graph(graph), std::nullopt, pairs);
}

}  // namespace lathe
