#include "passes/transforms/recompute.h"

#include <deque>
#include <map>

#include "ir/support/error.h"
#include "ir/support/post_order.h"
#include "ir/tensor/node_map.h"

namespace lathe::ir {

namespace {

class Recomputer {
 public:
  Recomputer(const Graph& from, std::span<const Recomputation> wanted) : from_(from), now_(from) {
    for (const Recomputation& r : wanted) {
      copies_.emplace_back();
      for (const ValueId id : r.values) copies_.back()[id] = {};
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (const ValueId reader : wanted[i].readers) read_by_[reader].push_back(&copies_[i]);
  }

  Graph run() {
    to_.name = from_.name;
    to_.checks = from_.checks;
    for (const ValueId id : all_values(from_)) {
      const auto reader = read_by_.find(id);
      now_[id] = add(from_[id], reader == read_by_.end() ? std::vector<Copies*>() : reader->second);
    }
    for (const Output& output : from_.outputs) to_.outputs.push_back({output.name, now(output.value)});
    for (const Update& update : from_.updates) to_.updates.push_back({now(update.state), now(update.value)});
    return std::move(to_);
  }

  std::vector<std::vector<ValueId>> made(std::span<const Recomputation> wanted) const {
    std::vector<std::vector<ValueId>> found;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      found.emplace_back();
      for (const ValueId value : wanted[i].values) found.back().push_back(copies_[i].at(value));
    }
    return found;
  }

 private:
  // The copies of one recomputation: value -> its copy, once a reader has needed it.
  using Copies = std::map<ValueId, ValueId>;

  ValueId now(ValueId old) const { return now_[old]; }

  /// Adds a node that reads these copies.
  ValueId add(Node node, const std::vector<Copies*>& reads) {
    for (ValueId& operand : node.operands) operand = find(operand, reads);
    to_.nodes.push_back(std::move(node));
    return {to_.size() - 1};
  }

  ValueId find(ValueId operand, const std::vector<Copies*>& reads) {
    for (Copies* copies : reads) {
      const auto at = copies->find(operand);
      if (at == copies->end()) continue;
      if (!at->second.valid()) copy(operand, *copies);
      return at->second;
    }
    LATHE_ASSERT(now(operand).valid());
    return now(operand);
  }

  /// Adds the copy of a value, after those of the values it depends on.
  void copy(ValueId value, Copies& copies) {
    const auto is_missing = [&](ValueId id) {
      const auto found = copies.find(id);
      return found != copies.end() && !found->second.valid();
    };
    post_order(
        value, [&](ValueId id) -> auto& { return from_[id].operands; }, is_missing,
        [&](ValueId id) {
          Node copied = from_[id];
          copied.name.clear();
          copies[id] = add(std::move(copied), {&copies});
          return true;
        });
  }

  const Graph& from_;
  Graph to_;
  NodeMap<ValueId> now_;                             // by old value
  std::deque<Copies> copies_;                        // by recomputation
  std::map<ValueId, std::vector<Copies*>> read_by_;  // by reader
};

}  // namespace

Graph recompute(const Graph& graph, std::span<const Recomputation> wanted,
                std::vector<std::vector<ValueId>>* copies) {
  Recomputer recomputer(graph, wanted);
  Graph result = recomputer.run();
  if (copies) *copies = recomputer.made(wanted);
  return result;
}

}  // namespace lathe::ir
