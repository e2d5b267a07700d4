#include "passes/chunks/row_region.h"

#include <algorithm>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::size_t most_members = 256;
constexpr const char* too_many = "too many values are made of it before its columns are gone";

class Grower {
 public:
  Grower(const Graph& graph, const Readers& readers, ValueId product)
      : graph_(graph), readers_(readers), affected_(graph) {
    region_.product = product;
  }

  RowRegion run(int rows, int columns) {
    const Node& node = graph_[region_.product];
    const auto down = rows_through(graph_, node, -1, {rows, 1}),
               across = rows_through(graph_, node, -1, {columns, 1});
    LATHE_ASSERT(down && across);
    table_ = unpermuted(node.operands[across->operands[0] ? 0 : 1]);
    find_affected();
    if (enter(region_.product, {*down, across}))
      while (!wanted_.empty() && region_.holds()) add(*wanted_.begin());
    if (region_.holds() && !folds_columns_) fail(region_.product, "nothing folds its columns row by row");
    if (region_.holds()) widen_sums();
    return std::move(region_);
  }

 private:
  bool is_affected(ValueId id) const { return affected_[id]; }

  ValueId unpermuted(ValueId id) const {
    while (canonical::permutation(graph_[id])) id = graph_[id].operands[0];
    return id;
  }

  /// Finds the nodes that depend on the product.
  void find_affected() {
    affected_[region_.product] = true;
    for (ValueId id{region_.product.index + 1}; id.index < graph_.size(); ++id.index)
      for (const ValueId operand : graph_[id].operands)
        if (is_affected(operand)) affected_[id] = true;
  }

  bool fail(ValueId at, std::string reason) {
    region_.reason = std::move(reason);
    region_.at = at;
    return false;
  }

  bool enter(ValueId id, RowRegion::Member member) {
    wanted_.erase(id);
    if (region_.members.size() == most_members) return fail(id, too_many);
    const bool large = member.is_large(), product = graph_[id].op->as<Contraction>();
    folds_columns_ = folds_columns_ || (member.columns && !member.has_columns() && (member.rows.result || !product));
    region_.members.emplace(id, std::move(member));
    if (!large) return true;
    if (readers_.is_result(id))
      return fail(id, "a value with all its rows and columns is an output or a state's new value");
    for (const ValueId user : readers_.of(id))
      if (!region_.members.contains(user)) wanted_.insert(user);
    return true;
  }

  /// Adds a node, after all its operands that depend on the product.
  bool add(ValueId value) {
    std::vector<std::pair<ValueId, std::size_t>> open = {{value, 0}};  // and how many operands have been visited
    while (!open.empty()) {
      const ValueId id = open.back().first;
      const Node& node = graph_[id];
      std::size_t& next = open.back().second;
      if (next < node.operands.size()) {
        const ValueId operand = node.operands[next++];
        if (!is_affected(operand) || region_.members.contains(operand)) continue;
        if (open.size() > most_members) return fail(operand, too_many);
        open.emplace_back(operand, 0);
        continue;
      }
      const auto member = follow(id);
      if (!member || !allowed(id, *member) || !enter(id, *member)) return false;
      open.pop_back();
    }
    return true;
  }

  /// Returns how rows and columns run through a node; all operands that have them must agree.
  std::optional<RowRegion::Member> follow(ValueId id) {
    const Node& node = graph_[id];
    std::optional<RowsThrough> rows, columns;
    for (int i = 0; i < static_cast<int>(node.operands.size()); ++i) {
      const ValueId operand = node.operands[i];
      if (!is_affected(operand)) continue;
      const RowRegion::Member& from = region_.members.at(operand);
      if (!from.rows.result) return fail(id, "it needs a sum over all rows"), std::nullopt;
      if (!follow(id, i, *from.rows.result, false, rows))
        return fail(id, "rows do not stay apart there"), std::nullopt;
      if (from.has_columns() && !follow(id, i, *from.columns->result, true, columns))
        return fail(id, "columns do not stay apart there"), std::nullopt;
    }
    LATHE_ASSERT(rows.has_value());
    return RowRegion::Member{*rows, columns};
  }

  /// Follows rows or columns from an operand; returns false if they are lost, or another operand has them elsewhere.
  bool follow(ValueId id, int operand, const RowAxis& axis, bool resized, std::optional<RowsThrough>& through) const {
    const auto found = rows_through(graph_, graph_[id], operand, axis, resized);
    const bool agrees = found && (!through || *through == *found);
    through = found;
    return agrees;
  }

  bool allowed(ValueId id, const RowRegion::Member& member) {
    const Node& node = graph_[id];
    const bool product = node.op->as<Contraction>();
    if (!member.rows.result && !product && !node.op->as<Reduce>()) return fail(id, "rows do not stay apart there");
    if (!product || !member.rows.result || !member.columns || member.has_columns()) return true;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (!member.rows.operands[i] && unpermuted(node.operands[i]) != table_)
        return fail(id, "its columns meet another table than the product's own");
    return true;
  }

  /// Sums that only a cast to more digits reads are added up after the cast.
  void widen_sums() {
    std::vector<ValueId> work;
    for (const auto& [id, member] : region_.members)
      if (!member.rows.result) work.push_back(id);
    for (const ValueId id : work) {
      const auto& users = readers_.of(id);
      if (users.size() != 1 || readers_.is_result(id)) continue;
      const Node& user = graph_[users[0]];
      const bool widens = user.op == &ops::cast && is_float(user.type.dtype) && is_float(graph_[id].type.dtype) &&
                          size_in_bytes(user.type.dtype) > size_in_bytes(graph_[id].type.dtype);
      if (widens) region_.members.emplace(users[0], RowRegion::Member{{{std::nullopt}, std::nullopt}, std::nullopt});
    }
  }

  const Graph& graph_;
  const Readers& readers_;
  NodeMap<bool> affected_;    // by node: depends on the product
  std::set<ValueId> wanted_;  // readers of values with rows and columns
  ValueId table_;
  bool folds_columns_ = false;
  RowRegion region_;
};

}  // namespace

Readers::Readers(const Graph& graph) : users(graph), results(graph) {
  for (const ValueId id : graph.results()) results[id] = true;
}

bool RowRegion::is_result(ValueId member, const Readers& readers) const {
  const auto& users = readers.of(member);
  return readers.is_result(member) ||
         std::any_of(users.begin(), users.end(), [&](ValueId user) { return !members.contains(user); });
}

RowRegion row_region(const Graph& graph, const Readers& readers, ValueId product, int rows, int columns) {
  return Grower(graph, readers, product).run(rows, columns);
}

}  // namespace lathe
