#include "passes/fusion/few_rows/read_before_append.h"

#include <algorithm>
#include <optional>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/affine.h"
#include "passes/fusion/few_rows/row_operands.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

namespace {

/// Elements of the appended rows. More take longer than the wait, which only few sequences notice.
constexpr std::int64_t most_elements = 1 << 16;

class AppendReader {
 public:
  AppendReader(const Graph& graph, std::int64_t most) : graph_(graph), most_(most), users_(graph), read_(graph) {}

  Graph run() {
    bool any = false;
    for (const ValueId id : all_values(graph_)) {
      if (!is_wanted(id)) continue;
      any = true;
      if (!is_product(graph_[id].operands[2])) return graph_;
    }
    if (!any) return graph_;
    GraphBuilder builder(graph_.name);
    Rebuilder to(builder, graph_);
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const GraphBuilder::At here(builder, node.loc);
      const bool reads =
          std::ranges::any_of(node.operands, [&](ValueId operand) { return read_[operand].has_value(); });
      if (reads && is_alias(node)) {
        read_[id] = builder.add(*node.op, {*read_[node.operands[0]]}, node.attrs);
        continue;
      }
      if (reads) {
        std::vector<Value> operands;
        for (const ValueId operand : node.operands)
          operands.push_back(read_[operand] ? *read_[operand] : to[operand]);
        to.set(id, builder.add(*node.op, operands, node.attrs));
        continue;
      }
      to.set(id, to.copy(node));
      if (is_wanted(id)) read_[id] = as_read(to, node);
    }
    to.close();
    return builder.finish();
  }

 private:
  bool is_wanted(ValueId id) const {
    const Node& node = graph_[id];
    if (node.op != &ops::update_rows || users_[id].empty()) return false;
    const int rank = node.type.rank(), dim = dim_of(node);
    const TensorType& positions = graph_[node.operands[1]].type;
    const bool is_one = graph_[node.operands[2]].type.shape[dim].is(1) && positions.rank() <= 2 &&
                        !(positions.rank() == rank && !(rank == 2 && dim == 1));
    const auto updates = [&](const Update& update) { return update.value == id && update.state == node.operands[0]; };
    const auto elements = graph_[node.operands[2]].type.shape.numel().value();
    return is_one && elements && *elements <= most_elements && std::ranges::any_of(graph_.updates, updates) &&
           std::ranges::none_of(graph_.outputs, [&](const Output& output) { return output.value == id; }) &&
           only_multiplied(id, id);
  }

  /// Whether the value is an argument, or that of a matmul with its epilogue, so that no other kernel computes it.
  bool is_product(ValueId value) const {
    const Node& node = graph_[through_aliases(graph_, value)];
    if (node.op->as<Contraction>() || node.op->as<Argument>()) return true;
    if (!node.op->as<Elementwise>()) return false;
    bool multiplies = false;
    for (const ValueId operand : node.operands) {
      const Node& from = graph_[through_aliases(graph_, operand)];
      if (from.op == &ops::constant) continue;
      if (!is_product(operand)) return false;
      multiplies = multiplies || !from.op->as<Argument>();
    }
    return multiplies;
  }

  int dim_of(const Node& node) const {
    return rules::normalize_axis(node.attrs.get<std::int64_t>("dim"), node.type.rank());
  }

  /// Whether all readers of an alias of the value are matmuls of few rows, whose other operand it is.
  bool only_multiplied(ValueId alias, ValueId value) const {
    return std::ranges::all_of(users_[alias], [&](ValueId user) {
      const Node& node = graph_[user];
      const auto results = graph_.results();
      if (is_alias(node)) return std::ranges::find(results, user) == results.end() && only_multiplied(user, value);
      if (!node.op->as<Contraction>()) return false;
      const int rows = operand_of_few_rows(graph_, node, most_);
      return rows >= 0 && through_aliases(graph_, node.operands[rows]) != value;
    });
  }

  /// Returns the updated state in terms of the old one.
  Value as_read(const Rebuilder& to, const Node& node) const {
    GraphBuilder& b = to.builder();
    const int rank = node.type.rank(), dim = dim_of(node);
    const Value positions = to[node.operands[1]];
    Shape along(std::vector<Dim>(static_cast<std::size_t>(rank), Dim(1))), at = along;
    along.set(dim, node.type.shape[dim]);
    if (positions.rank() == 2) at.set(0, positions.shape()[0]);
    const Value dense = positions.type().is_contiguous() ? positions : contiguous(positions);
    const Value here = eq(iota(b, along, dim, i64), cast(view(dense, at), i64));
    return where(here, to[node.operands[2]], to[node.operands[0]]);
  }

  const Graph& graph_;
  std::int64_t most_;
  Users users_;
  NodeMap<std::optional<Value>> read_;  // by old node: the value that replaces it in matmuls
};

}  // namespace

Graph read_before_append(Graph graph, std::int64_t most) { return AppendReader(graph, most).run(); }

}  // namespace lathe
