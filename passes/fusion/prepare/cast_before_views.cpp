#include "passes/fusion/prepare/cast_before_views.h"

#include <algorithm>
#include <optional>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/affine.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

namespace {

class CastMover {
 public:
  explicit CastMover(const Graph& graph) : graph_(graph), users_(graph), wanted_(graph), cast_(graph) {
    NodeMap<bool> kept(graph, false);
    for (const ValueId id : graph.results()) kept[id] = true;
    for (int i = static_cast<int>(graph.nodes.size()) - 1; i >= 0; --i) {
      const ValueId id{i};
      if (graph[id].type.dtype == f32 && !kept[id]) wanted_[id] = wanted_by_all(id);
    }
  }

  Graph run() {
    bool any = false;
    for (const ValueId id : all_values(graph_)) any = any || is_root(id);
    if (!any) return graph_;
    GraphBuilder builder(graph_.name);
    Rebuilder to(builder, graph_);
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const GraphBuilder::At here(builder, node.loc);
      const std::optional<Value>& operand = node.operands.empty() ? none_ : cast_[node.operands[0]];
      if (operand && is_alias(node)) {
        std::vector<Value> operands = to.operands(node);
        operands[0] = *operand;
        cast_[id] = builder.add(*node.op, operands, node.attrs);
      } else if (operand) {
        to.set(id, *operand);  // a cast
        continue;
      }
      to.set(id, to.copy(node));
      if (is_root(id)) cast_[id] = cast(to[id], *wanted_[id]);
    }
    to.close();
    return dce(builder.finish());
  }

 private:
  /// Returns the dtype that a reader casts the value to, possibly after views of it.
  std::optional<DType> wanted_by(ValueId reader) const {
    const Node& node = graph_[reader];
    if (is_alias(node)) return wanted_[reader];
    const bool is_cast = node.op == &ops::cast && (node.type.dtype == bf16 || node.type.dtype == f16);
    return is_cast ? std::optional(node.type.dtype) : std::nullopt;
  }

  std::optional<DType> wanted_by_all(ValueId id) const {
    const auto users = users_[id];
    if (users.empty()) return std::nullopt;
    const std::optional<DType> first = wanted_by(users.front());
    const auto same = [&](ValueId user) { return wanted_by(user) == first; };
    return std::all_of(users.begin(), users.end(), same) ? first : std::nullopt;
  }

  /// Whether it is a computed value that is cast after a view.
  bool is_root(ValueId id) const {
    const Node& node = graph_[id];
    const auto users = users_[id];
    return wanted_[id] && !is_alias(node) && !node.op->as<Argument>() && node.op != &ops::constant &&
           std::any_of(users.begin(), users.end(), [this](ValueId user) { return is_alias(graph_[user]); });
  }

  const Graph& graph_;
  Users users_;
  NodeMap<std::optional<DType>> wanted_;  ///< the dtype that all readers of a value cast it to
  NodeMap<std::optional<Value>> cast_;    ///< new casts of a root and its views
  const std::optional<Value> none_;
};

}  // namespace

Graph cast_before_views(const Graph& graph) { return CastMover(graph).run(); }

}  // namespace lathe
