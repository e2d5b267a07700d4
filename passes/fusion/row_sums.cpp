#include "passes/fusion/row_sums.h"

#include <algorithm>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/fusion.h"

namespace lathe {

using namespace ir;

namespace {

// Threads share rows; if there are few, one may have most updates.
constexpr std::int64_t least_rows = 16;
constexpr std::int64_t least_columns = 8;

/// Whether the updates of position t are at base + t * stride.
bool at_one_stride(const TensorType& updates, int first, int count) {
  for (int d = first; d + 1 < first + count; ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (updates.strides[at] != updates.strides[at + 1] * updates.shape[d + 1].unnamed()) return false;
  }
  return true;
}

bool has_room(const Graph& graph, const Node& scatter) {
  const int dim = rules::normalize_axis(scatter.attrs.get<std::int64_t>("dim"), scatter.type.rank());
  Dim columns(1);
  for (int d = dim + 1; d < scatter.type.rank(); ++d) columns = columns * scatter.type.shape[d].unnamed();
  const Node& updates = graph[scatter.operands[1]];
  return scatter.type.shape[dim].value().value_or(0) >= least_rows && columns.value().value_or(0) >= least_columns &&
         at_one_stride(updates.type, dim, graph[scatter.operands[0]].type.rank()) &&
         !is_splat(graph[through_aliases(graph, scatter.operands[1])]);
}

class RowSumFinder {
 public:
  explicit RowSumFinder(const Graph& graph) : graph_(graph), users_(graph), result_(graph, false) {
    for (const ValueId id : graph.results()) result_[id] = true;
  }

  NodeMap<bool> run() const {
    NodeMap<bool> found(graph_, false);
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      found[id] = node.op == &ops::scatter_add && !result_[id] && has_room(graph_, node) && only_point_wise(id);
    }
    return found;
  }

 private:
  /// Whether everything that depends on a value is point-wise and has its shape, up to the results.
  bool only_point_wise(ValueId from) const {
    std::set<ValueId> seen;
    std::vector<ValueId> work = {from};
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      for (const ValueId user : users_[id]) {
        const Node& node = graph_[user];
        if (!node.op->as<Elementwise>() || node.type.shape != graph_[from].type.shape) return false;
        if (seen.insert(user).second) work.push_back(user);
      }
    }
    return true;
  }

  const Graph& graph_;
  Users users_;
  NodeMap<bool> result_;  // whether the graph returns it
};

}  // namespace

NodeMap<bool> find_row_sums(const Graph& graph) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                               [](const Node& node) { return node.op == &ops::scatter_add; });
  return any ? RowSumFinder(graph).run() : NodeMap<bool>(graph, false);
}

}  // namespace lathe
