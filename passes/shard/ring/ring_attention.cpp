#include "passes/shard/ring/ring_attention.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/ops/collectives.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/softmax_floors.h"
#include "ir/support/error.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/node_map.h"
#include "passes/fusion/attention/attention_delta.h"
#include "passes/shard/ring/ring_blocks.h"
#include "passes/transforms/dce.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// Whether a value is a gathered value, possibly viewed, copied or cast.
bool is_gathered(const Graph& graph, ValueId id) {
  while (graph[id].op->as<View>() || graph[id].op == &ops::contiguous || graph[id].op == &ops::cast)
    id = graph[id].operands[0];
  return graph[id].op == &ops::all_gather;
}

Value wide(const Value& a) { return is_float(a.dtype()) && a.dtype() != f64 ? cast(a, f32) : a; }

/// Adds the forward pass of a ring to a graph: the results, and the values of each row that the softmax saves.
class ForwardRing {
 public:
  ForwardRing(const Ring& ring, Rebuilder& to) : ring_(ring), to_(to), b_(to.builder()), blocks_(ring, to, false) {
    kept_.resize(ring.softmaxes.size());
    summed_.resize(ring.results.size());
  }

  void run() {
    for (int step = 0; step < ring_.axis.ranks; ++step) {
      std::vector<std::optional<Weights>> weights;
      for (std::size_t i = 0; i < ring_.softmaxes.size(); ++i) weights.push_back(softmax_of_block(i, step));
      for (std::size_t i = 0; i < ring_.results.size(); ++i) add_result(i, step, weights);
    }
    for (std::size_t i = 0; i < ring_.softmaxes.size(); ++i) {
      const RingSoftmax& softmax = ring_.softmaxes[i];
      set_rows(softmax.maximum, kept_[i]->maximum);
      set_rows(softmax.sum, kept_[i]->sum);
    }
  }

  /// Divides the sums of exponentials times values by the sums of exponentials, whose nodes now exist.
  void close() {
    for (std::size_t i = 0; i < ring_.results.size(); ++i) {
      const RingResult& result = ring_.results[i];
      const RingSoftmax& softmax = softmax_of(result);
      const Node& node = graph()[result.product];
      const GraphBuilder::At here(b_, graph()[softmax.weights].loc);
      const Value sum = to_[graph()[softmax.weights].operands[1]];
      const Value all =
          div(*summed_[i], cast(blocks_.beside_product(sum, softmax.weights, result), summed_[i]->dtype()));
      to_.set(result.product, cast(all, node.type.dtype));
    }
  }

 private:
  struct Rows {
    Value maximum, sum;
  };
  /// The weights of earlier blocks, and of a block.
  struct Weights {
    Value before, block;
  };

  const Graph& graph() const { return to_.from(); }
  const RingSoftmax& softmax_of(const RingResult& result) const { return ring_.softmaxes[result.softmax]; }

  /// Adds a block to the saved values of each row; returns the weights, for all blocks but the first one.
  std::optional<Weights> softmax_of_block(std::size_t i, int step) {
    const RingSoftmax& softmax = ring_.softmaxes[i];
    const std::int64_t d = ring_.keys->of(softmax.scores);
    const Value scores = blocks_.at(softmax.scores, step);
    const GraphBuilder::At here(b_, graph()[softmax.maximum].loc);
    const Value most = maximum(max(scores, {d}, true), least_softmax_maximum(scores.dtype()));
    blocks_.set(softmax.difference, step, sub(scores, most));
    blocks_.set(softmax.weights, step, blocks_.at(softmax.exponentials, step));
    const Value total = sum(blocks_.at(softmax.exponentials, step), {d}, true);
    if (step == 0) {
      kept_[i] = {most, total};
      return std::nullopt;
    }
    const std::array<Value, 2> both{kept_[i]->maximum, most};
    const Value maxima = concat(both, static_cast<int>(d)), now = max(maxima, {d}, true);
    const Value factors = exp(sub(maxima, now));
    const Weights weights{slice(factors, static_cast<int>(d), 0, 1), slice(factors, static_cast<int>(d), 1, 2)};
    kept_[i] = {now, add(mul(kept_[i]->sum, weights.before), mul(total, weights.block))};
    return weights;
  }

  void add_result(std::size_t i, int step, const std::vector<std::optional<Weights>>& weights) {
    const RingResult& result = ring_.results[i];
    const Value block = wide(blocks_.sum_of(result.product, step));
    const GraphBuilder::At here(b_, graph()[result.product].loc);
    const auto& of_rows = weights[result.softmax];
    if (!of_rows) {
      summed_[i] = block;
      return;
    }
    const auto weighed = [&](const Value& values, const Value& rows) {
      return mul(values, cast(blocks_.beside_product(rows, softmax_of(result).weights, result), values.dtype()));
    };
    summed_[i] = add(weighed(*summed_[i], of_rows->before), weighed(block, of_rows->block));
  }

  void set_rows(ValueId id, const Value& rows) {
    to_.set(id,
            rows.rank() == graph()[id].type.rank() ? rows : squeeze(rows, ring_.keys->of(graph()[id].operands[0])));
  }

  const Ring& ring_;
  Rebuilder& to_;
  GraphBuilder& b_;
  RingBlocks blocks_;
  std::vector<std::optional<Rows>> kept_;     ///< by softmax, so far
  std::vector<std::optional<Value>> summed_;  ///< by result, so far
};

class RingWriter {
 public:
  RingWriter(const Graph& graph, const std::vector<Ring>& rings)
      : graph_(graph),
        rings_(rings),
        builder_(std::make_shared<GraphBuilder>(graph.name)),
        to_(*builder_, graph),
        part_(graph) {
    for (std::size_t r = 0; r < rings.size(); ++r) {
      const Ring& ring = rings[r];
      for (const ValueId id : all_values(graph))
        if (ring.is_inside(id)) part_[id] = {Role::inside, r};
      for (const RingSoftmax& softmax : ring.softmaxes)
        for (const ValueId id : {softmax.maximum, softmax.sum}) part_[id] = {Role::kept, r};
      for (const RingResult& result : ring.results) part_[result.product] = {Role::result, r};
      for (const ValueId id : ring.late) part_[id] = {Role::late, r};
    }
    forward_.resize(rings.size());
  }

  Graph run() {
    for (const ValueId id : graph_.arguments()) write(id);  // in their order
    for (const ValueId id : all_values(graph_)) write(id);
    to_.close();
    return dce(builder_->finish());
  }

 private:
  enum class Role : std::uint8_t { none, inside, kept, result, late };
  struct Part {
    Role role = Role::none;
    std::size_t ring = 0;
  };

  /// Writes the nodes that these need, with the rings that they depend on.
  void need(std::span<const ValueId> ids) {
    const auto is_open = [&](ValueId id) { return !to_.has(id) && part_[id].role == Role::none; };
    for (const ValueId id : ancestors(graph_, ids, is_open)) write(id);
  }

  void write(ValueId id) {
    if (to_.has(id)) return;
    const auto [role, r] = part_[id];
    switch (role) {
      case Role::inside: return;
      case Role::kept: write_forward(r); return;
      case Role::result: write_results(r); return;
      case Role::late: write_late(r); return;
      case Role::none: break;
    }
    const auto& operands = graph_[id].operands;
    if (std::ranges::any_of(operands, [&](ValueId operand) { return !to_.has(operand); })) need({&id, 1});
    if (to_.has(id)) return;
    to_.set(id, to_.copy(graph_[id]));
  }

  /// Returns the values that the blocks of the ring's nodes `of` read.
  std::vector<ValueId> sources(const Ring& ring, std::span<const ValueId> of) const {
    const auto is_block = [&](ValueId id) {
      return std::ranges::find(of, id) != of.end() || ring.is_inside(id) || goes_by_blocks(graph_, *ring.keys, id);
    };
    std::vector<ValueId> found;
    for (const ValueId id : ancestors(graph_, of, is_block))
      if (!is_block(id)) found.push_back(id);
    return found;
  }

  void write_forward(std::size_t r) {
    const Ring& ring = rings_[r];
    std::vector<ValueId> of;
    for (const RingResult& result : ring.results) of.push_back(result.product);
    std::vector<ValueId> from = sources(ring, of);
    for (const RingSoftmax& softmax : ring.softmaxes)  // computed from blocks
      for (const ValueId id : {softmax.difference, softmax.weights}) std::erase(from, graph_[id].operands[1]);
    need(from);
    forward_[r].emplace(ring, to_);
    forward_[r]->run();
  }

  void write_results(std::size_t r) {
    const Ring& ring = rings_[r];
    for (const RingSoftmax& softmax : ring.softmaxes) need({&graph_[softmax.weights].operands[1], 1});
    forward_[r]->close();
  }

  void write_late(std::size_t r) {
    const Ring& ring = rings_[r];
    need(sources(ring, ring.late));
    RingBlocks blocks(ring, to_, true);
    std::vector<std::optional<Value>> sums(ring.late.size());
    for (int turn = 1; turn <= ring.axis.ranks; ++turn)  // the own block last, when sums are back
      for (std::size_t i = 0; i < ring.late.size(); ++i) {
        const Node& node = graph_[ring.late[i]];
        const Value block = wide(blocks.sum_of(ring.late[i], turn % static_cast<int>(ring.axis.ranks)));
        const GraphBuilder::At here(*builder_, node.loc);
        const bool travels = node.op == &ops::reduce_scatter;
        sums[i] = sums[i] ? add(travels ? handed_on(*sums[i], ring) : *sums[i], block) : block;
      }
    for (std::size_t i = 0; i < ring.late.size(); ++i) {
      const Node& node = graph_[ring.late[i]];
      const GraphBuilder::At here(*builder_, node.loc);
      to_.set(ring.late[i], cast(*sums[i], node.type.dtype));
    }
  }

  static Value handed_on(const Value& sum, const Ring& ring) { return send_recv(sum, ring.axis, 1); }

  const Graph& graph_;
  const std::vector<Ring>& rings_;
  std::shared_ptr<GraphBuilder> builder_;
  Rebuilder to_;
  NodeMap<Part> part_;  ///< by node
  std::vector<std::optional<ForwardRing>> forward_;
};

}  // namespace

RingGraph ring_attention(const Graph& graph) {
  if (const RingSearch first = find_rings(graph); first.rings.empty() && first.gathered.empty())
    return {.graph = graph, .rings = 0, .gathered = {}};
  const auto sums_gathered = [&](ValueId product) {
    return std::ranges::any_of(graph[product].operands, [&](ValueId operand) { return is_gathered(graph, operand); });
  };
  // Gradients need only one round if the sums of weight times gradient are known before.
  const Graph from_results = sums_from_results(graph, sums_gathered, {.converted = true, .independent = true});
  RingSearch found = find_rings(from_results);
  if (found.rings.empty()) return {.graph = graph, .rings = 0, .gathered = std::move(found.gathered)};
  return {.graph = RingWriter(from_results, found.rings).run(),
          .rings = static_cast<int>(found.rings.size()),
          .gathered = std::move(found.gathered)};
}

std::string_view reason_of_send(const Node& send_recv) {
  if (send_recv.attrs.get<bool>("again")) return "keys and values are passed around again, for their gradients";
  return send_recv.loc.gradient()
             ? "the gradients of keys and values are passed along with them, back to their owners"
             : "keys and values are passed around a ring";
}

}  // namespace lathe::shard
