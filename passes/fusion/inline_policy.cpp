#include "passes/fusion/inline_policy.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "ir/ops/draws.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/loop_views.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/order/dependence.h"
#include "passes/fusion/reads.h"
#include "passes/fusion/regions/own_region.h"

namespace lathe {

using namespace ir;

namespace {

constexpr int mask_limit = 64;     // a mask drawn from Philox is recomputed, as the backward pass needs it
constexpr int operand_limit = 12;  // an operand of a matmul or an outer reduction
constexpr int shared_limit = 3;    // such an operand with several readers
constexpr int repeated_limit = 1;  // read repeatedly by a kernel, from one buffer: a cast, a factor

/// Readers of a value through views, and whether one of them needs it in memory.
struct Uses {
  std::vector<ValueId> readers;
  bool memory = false;
};

NodeMap<Uses> find_uses(const Graph& graph, const NodeMap<bool>& row_sums) {
  NodeMap<Uses> uses(graph);
  for (const ValueId id : graph.results()) uses[id].memory = true;
  for (std::int32_t i = graph.size() - 1; i >= 0; --i) {
    const Node& node = graph[ValueId{i}];
    const bool alias = is_alias(node);
    if (reads_by_address(node) && !is_index_check(graph, node)) uses[node.operands[0]].memory = true;
    if (!row_sums.empty() && row_sums[{i}]) uses[node.operands[1]].memory = true;
    if (is_loop(node))
      for (const ValueId operand : node.operands) uses[operand].memory = true;
    for (const ValueId operand : node.operands) {
      Uses& use = uses[operand];
      if (!alias) {
        use.readers.push_back({i});
        continue;
      }
      const Uses& through = uses[{i}];
      use.readers.insert(use.readers.end(), through.readers.begin(), through.readers.end());
      use.memory = use.memory || through.memory || reshapes_memory(graph, node);
    }
  }
  return uses;
}

bool is_columns(const Graph& graph, const Node& node) {
  return node.op->as<Reduce>() && !folds_trailing_dims(graph, node);
}

bool computes_point_wise(const Graph& graph, const Node& node) {
  return is_index_check(graph, node) || node.op->as<Elementwise>() || node.op == &ops::iota || is_draw(*node.op) ||
         node.op == &ops::concat || node.op == &ops::pad;
}

bool is_row_reduction(const Graph& graph, const Node& node) {
  return node.op->as<Reduce>() && folds_trailing_dims(graph, node);
}

/// Whether only matmuls, outer reductions and scatters read it: they load it, or compute it there.
bool feeds_operands_only(const Graph& graph, const Uses& uses) {
  return !uses.memory && !uses.readers.empty() &&
         std::all_of(uses.readers.begin(), uses.readers.end(), [&](ValueId reader) {
           const Node& r = graph[reader];
           return r.op->as<Contraction>() || own_region(r) || is_columns(graph, r);
         });
}

/// Whether a reader's kernel computes an element many times: for each block of columns, each comparison or each row
/// of a triangle.
bool is_read_repeatedly(const Graph& graph, const Uses& uses) {
  return std::any_of(uses.readers.begin(), uses.readers.end(), [&](ValueId reader) {
    const auto own = own_region(graph[reader]);
    return own == RegionKind::sort || own == RegionKind::grouped || own == RegionKind::triangular;
  });
}

/// Whether its only reader is a concat or a pad, which reads the elements at another index, so that no kernel can
/// have both.
bool feeds_a_join(const Graph& graph, const Uses& uses) {
  if (uses.memory || uses.readers.size() != 1) return false;
  const Node& reader = graph[uses.readers[0]];
  return reader.op == &ops::concat || reader.op == &ops::pad;
}

/// Whether a node is a cast of bf16 or f16 to a wider dtype and each reader casts a view of the same matmul, as for
/// logits with padded columns. The matmul is then stored, with half as many bytes as one of the casts.
bool widens_a_stored_product(const Graph& graph, const NodeMap<Uses>& all_uses, const Node& node) {
  const auto widens = [&](const Node& cast) {
    return cast.op == &ops::cast &&
           size_in_bytes(cast.type.dtype) > size_in_bytes(graph[cast.operands[0]].type.dtype);
  };
  if (!widens(node)) return false;
  const ValueId product = through_aliases(graph, node.operands[0]);
  const auto& readers = all_uses[product].readers;
  return graph[product].op->as<Contraction>() && readers.size() > 1 &&
         std::all_of(readers.begin(), readers.end(), [&](ValueId reader) { return widens(graph[reader]); });
}

/// By node: the contractions, reductions and other nodes with their own loops that its elements depend on, through
/// point-wise nodes.
class Sources {
 public:
  explicit Sources(const Graph& graph) : set_of_(graph, none) {
    for (const ValueId id : all_values(graph)) {
      const Node& node = graph[id];
      int& set = set_of_[id];
      if (node.op->as<Argument>() || node.op == &ops::constant) continue;
      if (is_alias(node) || computes_point_wise(graph, node))
        for (const ValueId operand : node.operands) set = joined(set, set_of_[operand]);
      else
        set = add({id});
    }
  }

  /// Returns them sorted; null if there are many.
  const std::vector<ValueId>* of(ValueId id) const {
    const int set = set_of_[id];
    return set == many ? nullptr : &sets_[set];
  }

 private:
  static constexpr int none = 0, many = -1;  // numbers of sets

  int add(std::vector<ValueId> set) {
    sets_.push_back(std::move(set));
    return static_cast<int>(sets_.size()) - 1;
  }

  int joined(int a, int b) {
    constexpr std::size_t most = 8;
    if (a == many || b == many) return many;
    if (a == b || b == none) return a;
    if (a == none) return b;
    const auto &x = sets_[a], &y = sets_[b];
    if (std::includes(x.begin(), x.end(), y.begin(), y.end())) return a;
    if (std::includes(y.begin(), y.end(), x.begin(), x.end())) return b;
    std::vector<ValueId> both;
    std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    return both.size() <= most ? add(std::move(both)) : many;
  }

  NodeMap<int> set_of_;
  std::vector<std::vector<ValueId>> sets_ = {{}};  // shared by nodes with the same set; the first is empty
};

/// Floats that are computed element by element from one narrower float each, and from smaller values. The narrower
/// value is stored, and readers widen it.
class Widened {
 public:
  explicit Widened(const Graph& graph) : graph_(graph), narrow_(graph, 0) {}

  /// Must be called once for every node, in order. `inlined`: those before it.
  bool is(ValueId id, const NodeMap<bool>& inlined) {
    const Node& node = graph_[id];
    if (!node.op->as<Elementwise>() || !is_float(node.type.dtype)) return false;
    std::size_t narrow = 0;
    int as_large = 0;
    for (const ValueId operand : node.operands) {
      const ValueId from = through_aliases(graph_, operand);
      if (graph_[from].type.shape.numel() != node.type.shape.numel()) continue;
      narrow = inlined[from] ? narrow_[from] : size_in_bytes(graph_[from].type.dtype);
      if (++as_large > 1 || narrow == 0 || !is_float(graph_[from].type.dtype)) return false;
    }
    if (as_large == 0 || narrow >= size_in_bytes(node.type.dtype)) return false;
    narrow_[id] = narrow;
    return true;
  }

 private:
  const Graph& graph_;
  NodeMap<std::size_t> narrow_;  // bytes of the narrower value, by widened node
};

/// Decides when an operand of a matmul should be stored instead of computed there.
class StoredInstead {
 public:
  StoredInstead(const Graph& graph, const NodeMap<Uses>& uses)
      : graph_(graph), uses_(uses), sources_(graph), dependence_(graph) {}

  /// Whether one of the value's operands is stored only because the value is not. The value should then be stored
  /// instead: its readers load it, and computing it there would not save memory.
  bool stands_for_an_operand(ValueId id, const NodeMap<bool>& inlined) const {
    const Node& node = graph_[id];
    return std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
      const Node& from = graph_[operand];
      const Uses& use = uses(operand);
      const bool stored =
          !is_alias(from) && !from.op->as<Argument>() && from.op != &ops::constant && !inlined[operand];
      if (!stored || use.memory || from.type.shape != node.type.shape ||
          size_in_bytes(node.type.dtype) > size_in_bytes(from.type.dtype))
        return false;
      const auto others = [&](ValueId reader) { return reader == id || runs_beside(reader, operand); };
      const bool only = std::all_of(use.readers.begin(), use.readers.end(), [&](ValueId r) { return r == id; });
      return only || (waits_for_no_more(id, operand) && std::all_of(use.readers.begin(), use.readers.end(), others));
    });
  }

 private:
  const Uses& uses(ValueId id) const { return uses_[id]; }

  /// Whether everything that `id` depends on has been computed when the loops that `than` depends on are done.
  bool waits_for_no_more(ValueId id, ValueId than) const {
    const std::vector<ValueId>*a = sources_.of(id), *b = sources_.of(than);
    return a && b && std::all_of(a->begin(), a->end(), [&](ValueId source) {
             return std::binary_search(b->begin(), b->end(), source) || dependence_.needs(than, source);
           });
  }

  /// Whether a reader can run in the kernel that computes the operand, element by element, so that it reads a
  /// register.
  bool runs_beside(ValueId reader, ValueId operand) const {
    const Node& node = graph_[reader];
    const Uses& use = uses(reader);
    return node.op->as<Elementwise>() && node.type.dtype != boolean &&
           node.type.shape == graph_[operand].type.shape && waits_for_no_more(reader, operand) &&
           !feeds_operands_only(graph_, use) && std::none_of(use.readers.begin(), use.readers.end(), [&](ValueId r) {
             return is_row_reduction(graph_, graph_[r]);
           });
  }

  const Graph& graph_;
  const NodeMap<Uses>& uses_;
  Sources sources_;
  Dependence dependence_;
};

/// Returns the total bytes of the arguments from which point-wise values are computed, if they depend on nothing
/// else; nothing for other values and unknown sizes.
NodeMap<std::optional<std::int64_t>> bytes_of_arguments(const Graph& graph) {
  NodeMap<std::optional<std::int64_t>> bytes(graph);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    auto& total = bytes[id];
    if (is_splat(node)) {
      total = 0;
    } else if (node.op->as<Argument>()) {
      if (const auto count = node.type.shape.numel().value())
        total = *count * static_cast<std::int64_t>(size_in_bytes(node.type.dtype));
    } else if (is_alias(node) || node.op->as<Elementwise>()) {
      total = 0;
      for (const ValueId operand : node.operands) {
        const auto& part = bytes[operand];
        total = total && part ? std::optional(*total + *part) : std::nullopt;
      }
    }
  }
  return bytes;
}

/// Returns the point-wise values that only lead to operands of matmuls and are at least twice as large as the
/// arguments from which they are computed, such as weights that are stored packed. Matmuls unpack them when they read
/// them.
NodeMap<bool> find_unpacked(const Graph& graph, const NodeMap<Uses>& uses) {
  const auto bytes = bytes_of_arguments(graph);
  NodeMap<bool> unpacked(graph, false);
  for (std::int32_t i = graph.size() - 1; i >= 0; --i) {
    const ValueId at{i};
    const Node& node = graph[at];
    if (!node.op->as<Elementwise>() || uses[at].memory || uses[at].readers.empty() || !bytes[at]) continue;
    const auto count = node.type.shape.numel().value();
    if (!count || *count * static_cast<std::int64_t>(size_in_bytes(node.type.dtype)) < 2 * *bytes[at]) continue;
    unpacked[at] = std::all_of(uses[at].readers.begin(), uses[at].readers.end(), [&](ValueId reader) {
      return graph[reader].op->as<Contraction>() || unpacked[reader];
    });
  }
  return unpacked;
}

}  // namespace

int arithmetic_cost(const Node& node) {
  if (is_draw(*node.op)) return 40;
  const auto* elementwise = node.op->as<Elementwise>();
  return elementwise ? traits(elementwise->op).cost : 1;
}

NodeMap<bool> choose_inlined(const Graph& graph, const NodeMap<bool>& row_sums, const NodeMap<bool>& copied) {
  const NodeMap<Uses> uses = find_uses(graph, row_sums);
  const StoredInstead instead(graph, uses);
  Widened widened(graph);
  const NodeMap<bool> unpacked = find_unpacked(graph, uses);
  NodeMap<bool> inlined(graph, false);
  NodeMap<int> cost(graph, 0);
  NodeMap<int> loads(graph, 1);  // distinct buffers read by an inlined node
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    if (is_alias(node)) {
      cost[id] = cost[node.operands[0]];
      loads[id] = loads[node.operands[0]];
      continue;
    }
    if (is_splat(node)) {
      inlined[id] = true;
      loads[id] = 0;
      continue;
    }
    if (!row_sums.empty() && row_sums[id]) {
      inlined[id] = true;
      cost[id] = mask_limit;  // its readers are not inlined in turn
      continue;
    }
    if (!computes_point_wise(graph, node) || uses[id].memory) continue;
    int total = arithmetic_cost(node), reads = 0;
    for (const ValueId operand : node.operands) {
      total += cost[operand];
      reads += loads[operand];
    }
    const auto& readers = uses[id].readers;
    const bool generated = node.op == &ops::iota || (reads == 0 && node.op->as<Elementwise>());
    const bool mask =
        node.type.dtype == boolean || is_draw(*node.op) || node.op == &ops::iota || is_index_check(graph, node);
    const bool late = widened.is(id, inlined);
    const int limit = mask                                                     ? mask_limit
                      : late                                                   ? shared_limit
                      : generated                                              ? shared_limit
                      : widens_a_stored_product(graph, uses, node)             ? shared_limit
                      : feeds_a_join(graph, uses[id])                          ? (reads <= 1 ? shared_limit : 0)
                      : !feeds_operands_only(graph, uses[id]) && !unpacked[id] ? 0
                      : is_read_repeatedly(graph, uses[id])                    ? (reads <= 1 ? repeated_limit : 0)
                      : readers.size() == 1                                    ? operand_limit
                                                                               : shared_limit;
    if (total > limit) continue;
    if (!mask && !generated && !late && !unpacked[id] && instead.stands_for_an_operand(id, inlined)) continue;
    if (!mask && !generated && !late && !copied.empty() && copied[id]) continue;
    inlined[id] = true;
    cost[id] = total;
    loads[id] = reads;
  }
  return inlined;
}

}  // namespace lathe
