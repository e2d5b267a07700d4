#include "passes/recompute.h"

#include <algorithm>
#include <map>

#include "ir/support/error.h"

namespace lathe::ir {

namespace {

using Copies = std::map<ValueId, ValueId>;  // old value -> its copy

class Recomputer {
 public:
  Recomputer(const Graph& from, std::span<const Recomputation> wanted)
      : from_(from), wanted_(wanted), now_(from.nodes.size()), made_(wanted.size()) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Recomputation& r = wanted[i];
      if (r.values.empty() || r.readers.empty()) continue;
      before_[*std::min_element(r.readers.begin(), r.readers.end())].push_back(i);
    }
  }

  Graph run() {
    to_.name = from_.name;
    to_.checks = from_.checks;
    for (const ValueId id : all_values(from_)) {
      if (const auto at = before_.find(id); at != before_.end())
        for (const std::size_t i : at->second) copy_values(i);
      const auto reader = copies_of_.find(id);
      static const Copies none;
      now_[static_cast<std::size_t>(id.index)] = add(from_[id], reader == copies_of_.end() ? none : reader->second);
    }
    for (const Output& output : from_.outputs) to_.outputs.push_back({output.name, now(output.value)});
    for (const Update& update : from_.updates) to_.updates.push_back({now(update.state), now(update.value)});
    return std::move(to_);
  }

  const std::vector<std::vector<ValueId>>& made() const { return made_; }

 private:
  ValueId now(ValueId old) const { return now_[static_cast<std::size_t>(old.index)]; }

  ValueId add(Node node, const Copies& copies) {
    for (ValueId& operand : node.operands) {
      const auto at = copies.find(operand);
      operand = at != copies.end() ? at->second : now(operand);
      LATHE_ASSERT(operand.valid());
    }
    to_.nodes.push_back(std::move(node));
    return {to_.size() - 1};
  }

  void copy_values(std::size_t which) {
    const Recomputation& r = wanted_[which];
    std::vector<ValueId> values = r.values;
    std::sort(values.begin(), values.end());
    Copies copies;
    for (const ValueId id : values) {
      Node node = from_[id];
      node.name.clear();
      copies[id] = add(std::move(node), copies);
      made_[which].push_back(copies[id]);
    }
    for (const ValueId reader : r.readers) copies_of_[reader].insert(copies.begin(), copies.end());
  }

  const Graph& from_;
  std::span<const Recomputation> wanted_;
  Graph to_;
  std::vector<ValueId> now_;                            // by old value
  std::vector<std::vector<ValueId>> made_;              // by recomputation
  std::map<ValueId, std::vector<std::size_t>> before_;  // by first reader
  std::map<ValueId, Copies> copies_of_;                 // by reader
};

}  // namespace

Graph recompute(const Graph& graph, std::span<const Recomputation> wanted,
                std::vector<std::vector<ValueId>>* copies) {
  Recomputer recomputer(graph, wanted);
  Graph result = recomputer.run();
  if (copies) *copies = recomputer.made();
  return result;
}

}  // namespace lathe::ir
