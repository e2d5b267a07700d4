#include "ir/tensor/diff/match_values.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/support/hash.h"
#include "ir/tensor/analysis/users.h"
#include "ir/tensor/diff/common_subsequence.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

using ValueKeys = NodeMap<std::size_t>;

std::size_t hash_text(std::string_view text) { return std::hash<std::string_view>()(text); }

/// One of the two graphs, with keys of its values.
struct Side {
  explicit Side(const Graph& of) : graph(of), users(of), label(of), partner(of) {
    for (const ValueId id : all_values(graph)) label[id] = label_of(graph[id]);
  }

  bool is_open(ValueId id) const { return !partner[id].valid() && !graph[id].op->as<Argument>(); }

  /// Returns the hash of a node without its operands, name and location.
  static std::size_t label_of(const Node& node) {
    std::size_t hash = hash_text(node.op->name.value);
    if (node.op->as<Argument>()) hash = mix_hash(hash, hash_text(node.name));
    for (const auto& [name, value] : node.attrs.entries())
      hash = mix_hash(mix_hash(hash, hash_text(name)), hash_text(print_whole(value)));
    return mix_hash(hash, hash_text(print_type(node.type, true)));
  }

  const Graph& graph;
  Users users;
  ValueKeys label;
  NodeMap<ValueId> partner;
};

/// Returns the hash of how each value is computed from the arguments.
ValueKeys from_inputs(const Side& side) {
  ValueKeys keys = side.label;
  for (const ValueId id : all_values(side.graph))
    for (const ValueId operand : side.graph[id].operands) keys[id] = mix_hash(keys[id], keys[operand]);
  return keys;
}

/// Adds up the hashes of a value's uses, in any order. `keys` are those of the users.
std::size_t uses_hash(const Side& side, ValueId id, const ValueKeys& keys) {
  std::size_t sum = 0;
  ValueId last;
  for (const ValueId user : side.users[id]) {
    if (user == last) continue;  // listed once per operand; all positions are counted at the first
    last = user;
    const Node& node = side.graph[user];
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (node.operands[i] == id) sum += mix_hash(keys[user], i + 1);
  }
  return sum;
}

/// Returns the hash of how the graph's results depend on each value.
ValueKeys from_results(const Side& side) {
  const Graph& graph = side.graph;
  ValueKeys keys(graph, 0);
  for (const Output& output : graph.outputs) keys[output.value] += mix_hash(1, hash_text(output.name));
  for (const Update& update : graph.updates) keys[update.value] += mix_hash(2, hash_text(graph[update.state].name));
  for (const ValueId id : reversed_values(graph))
    keys[id] = mix_hash(side.label[id], keys[id] + uses_hash(side, id, keys));
  return keys;
}

/// Returns hashes of each value's neighbourhood: everything within `radius` edges.
ValueKeys neighbourhoods(const Side& side, int radius, bool names) {
  ValueKeys keys = side.label;
  if (names)
    for (const ValueId id : all_values(side.graph)) {
      const Node& node = side.graph[id];
      keys[id] = mix_hash(mix_hash(keys[id], hash_text(node.name)), hash_text(node.loc.scope()));
      keys[id] = mix_hash(keys[id], node.loc.gradient() ? 1 : 0);
    }
  for (int i = 0; i < radius; ++i) {
    ValueKeys wider(side.graph);
    for (const ValueId id : all_values(side.graph)) {
      std::size_t hash = keys[id];
      for (const ValueId operand : side.graph[id].operands) hash = mix_hash(hash, keys[operand]);
      wider[id] = mix_hash(hash, uses_hash(side, id, keys));
    }
    keys = std::move(wider);
  }
  return keys;
}

class Matcher {
 public:
  Matcher(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  /// Matches sequences by their neighbourhoods, once per radius, in order.
  void run(std::span<const int> radii) {
    match_arguments();
    match_equal();
    for (const int radius : radii) match_sequence(neighbourhoods(a_, radius, true), neighbourhoods(b_, radius, true));
    match_sequence(neighbourhoods(a_, 1, false), neighbourhoods(b_, 1, false));
    while (match_neighbours()) {
    }
    match_replaced();
  }

  /// Returns how many values are without a partner, or differ from it by themselves.
  int faults() const {
    int count = 0;
    for (const ValueId id : all_values(a_.graph)) count += a_.partner[id].valid() ? 0 : 1;
    for (const ValueId id : all_values(b_.graph)) count += b_.partner[id].valid() ? differs(id) : 1;
    return count;
  }

  ValueMatch result() && { return {std::move(a_.partner), std::move(b_.partner)}; }

 private:
  void pair(ValueId a, ValueId b) {
    a_.partner[a] = b;
    b_.partner[b] = a;
  }

  void match_arguments() {
    std::map<std::string_view, ValueId> named;
    for (const ValueId id : a_.graph.arguments()) named.emplace(a_.graph[id].name, id);
    for (const ValueId id : b_.graph.arguments())
      if (const auto found = named.find(b_.graph[id].name); found != named.end()) pair(found->second, id);
  }

  /// Pairs values with equal keys in order. With `as_many`, only those that occur equally often in both graphs.
  void match_keys(const ValueKeys& in_a, const ValueKeys& in_b, bool as_many) {
    std::unordered_map<std::size_t, std::pair<std::vector<ValueId>, std::vector<ValueId>>> groups;
    for (const ValueId id : all_values(a_.graph))
      if (a_.is_open(id)) groups[in_a[id]].first.push_back(id);
    for (const ValueId id : all_values(b_.graph))
      if (b_.is_open(id)) groups[in_b[id]].second.push_back(id);
    for (const auto& [key, group] : groups) {
      const auto& [of_a, of_b] = group;
      if (as_many && of_a.size() != of_b.size()) continue;
      for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) pair(of_a[i], of_b[i]);
    }
  }

  static ValueKeys joined(const ValueKeys& one, const ValueKeys& other, const Graph& graph) {
    ValueKeys keys(graph);
    for (const ValueId id : all_values(graph)) keys[id] = mix_hash(one[id], other[id]);
    return keys;
  }

  static ValueKeys with_names(const ValueKeys& keys, const Graph& graph) {
    ValueKeys named(graph);
    for (const ValueId id : all_values(graph)) named[id] = mix_hash(keys[id], hash_text(graph[id].name));
    return named;
  }

  void match_equal() {
    const ValueKeys forward_a = from_inputs(a_), forward_b = from_inputs(b_);
    const ValueKeys backward_a = from_results(a_), backward_b = from_results(b_);
    match_keys(joined(forward_a, backward_a, a_.graph), joined(forward_b, backward_b, b_.graph), true);
    match_keys(with_names(forward_a, a_.graph), with_names(forward_b, b_.graph), false);
    match_keys(forward_a, forward_b, false);
    match_keys(backward_a, backward_b, true);
  }

  void match_sequence(const ValueKeys& in_a, const ValueKeys& in_b) {
    std::vector<ValueId> open_a, open_b;
    std::vector<std::size_t> keys_a, keys_b;
    const auto collect = [](const Side& side, const ValueKeys& keys, std::vector<ValueId>& open,
                            std::vector<std::size_t>& list) {
      for (const ValueId id : all_values(side.graph))
        if (side.is_open(id)) {
          open.push_back(id);
          list.push_back(keys[id]);
        }
    };
    collect(a_, in_a, open_a, keys_a);
    collect(b_, in_b, open_b, keys_b);
    std::vector<std::pair<ValueId, ValueId>> pairs;
    for (const auto& [i, j] : common_subsequence(keys_a, keys_b)) pairs.emplace_back(open_a[i], open_b[j]);
    for (const auto& [a, b] : pairs) pair(a, b);
    while (std::erase_if(pairs, [&](const auto& both) {
             if (has_matched_neighbour(both.first, both.second)) return false;
             a_.partner[both.first] = b_.partner[both.second] = {};
             return true;
           }) > 0) {
    }
  }

  /// Returns whether two values read, or are read by, matched values at the same position.
  bool has_matched_neighbour(ValueId a, ValueId b) const {
    const auto &of_a = a_.graph[a].operands, &of_b = b_.graph[b].operands;
    for (std::size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
      if (a_.partner[of_a[i]] == of_b[i]) return true;
    for (const ValueId user : b_.users[b])
      if (const ValueId other = b_.partner[user]; other.valid()) {
        const auto &read_a = a_.graph[other].operands, &read_b = b_.graph[user].operands;
        for (std::size_t i = 0; i < std::min(read_a.size(), read_b.size()); ++i)
          if (read_a[i] == a && read_b[i] == b) return true;
      }
    return false;
  }

  int differs(ValueId b) const {
    const ValueId a = b_.partner[b];
    if (a_.label[a] != b_.label[b]) return 1;
    const auto &of_a = a_.graph[a].operands, &of_b = b_.graph[b].operands;
    if (of_a.size() != of_b.size()) return 1;
    for (std::size_t i = 0; i < of_a.size(); ++i) {
      const bool both = a_.partner[of_a[i]].valid() && b_.partner[of_b[i]].valid();
      if (both && a_.partner[of_a[i]] != of_b[i]) return 1;
    }
    return 0;
  }

  /// Returns the unmatched value of a with the op of `id`, a value of b, that reads a matched operand at the same
  /// position, or that a matched user reads at the same position.
  ValueId neighbour_of(ValueId id) const {
    const Node& node = b_.graph[id];
    const auto fits = [&](ValueId candidate) {
      return a_.is_open(candidate) && a_.graph[candidate].op->name.value == node.op->name.value;
    };
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (const ValueId operand = b_.partner[node.operands[i]]; operand.valid())
        for (const ValueId user : a_.users[operand]) {
          const Node& other = a_.graph[user];
          if (fits(user) && i < other.operands.size() && other.operands[i] == operand) return user;
        }
    for (const ValueId user : b_.users[id])
      if (const ValueId other = b_.partner[user]; other.valid())
        for (std::size_t i = 0; i < b_.graph[user].operands.size(); ++i)
          if (b_.graph[user].operands[i] == id && i < a_.graph[other].operands.size() &&
              fits(a_.graph[other].operands[i]))
            return a_.graph[other].operands[i];
    return {};
  }

  bool match_neighbours() {
    bool found = false;
    for (const ValueId id : all_values(b_.graph))
      if (b_.is_open(id))
        if (const ValueId other = neighbour_of(id); other.valid()) {
          pair(other, id);
          found = true;
        }
    return found;
  }

  /// Returns whether two values have matched operands and matched users, at the same positions.
  bool same_place(ValueId a, ValueId b) const {
    const auto matched = [&](ValueId x, ValueId y) { return a_.partner[x] == y; };
    const auto& of_a = a_.graph[a].operands;
    const auto& of_b = b_.graph[b].operands;
    if (!std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), matched)) return false;
    const auto users_a = a_.users[a], users_b = b_.users[b];
    if (users_a.size() != users_b.size()) return false;
    return std::ranges::all_of(users_b, [&](ValueId user) {
      const ValueId other = b_.partner[user];
      if (!other.valid()) return false;
      const auto &read_b = b_.graph[user].operands, &read_a = a_.graph[other].operands;
      for (std::size_t i = 0; i < read_b.size(); ++i)
        if (read_b[i] == b && (i >= read_a.size() || read_a[i] != a)) return false;
      return true;
    });
  }

  /// Pairs a value with the value of another op that took its place.
  void match_replaced() {
    for (const ValueId id : all_values(b_.graph)) {
      if (!b_.is_open(id) || b_.graph[id].operands.size() == 0) continue;
      const ValueId operand = b_.partner[b_.graph[id].operands[0]];
      if (!operand.valid()) continue;
      for (const ValueId candidate : a_.users[operand])
        if (a_.is_open(candidate) && same_place(candidate, id)) {
          pair(candidate, id);
          break;
        }
    }
  }

  Side a_, b_;
};

}  // namespace

ValueMatch match_values(const Graph& a, const Graph& b) {
  // Wide neighbourhoods distinguish similar values, narrow ones keep more of repeated ones: the better match wins.
  static constexpr int wide[] = {3, 1, 0}, narrow[] = {0};
  Matcher first(a, b);
  first.run(wide);
  const int faults = first.faults();
  if (faults == 0) return std::move(first).result();
  Matcher second(a, b);
  second.run(narrow);
  return second.faults() < faults ? std::move(second).result() : std::move(first).result();
}

}  // namespace lathe::ir
