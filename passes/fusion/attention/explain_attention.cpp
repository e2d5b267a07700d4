#include "passes/fusion/attention/explain_attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "ir/ops/list.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"

namespace lathe {

using namespace ir;

namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

class Explanation {
 public:
  Explanation(const Graph& graph, const AttentionMachine& machine)
      : graph_(graph),
        machine_(machine),
        search_(find_attention(graph, {.sums = machine.search.sums, .costs = machine.search.costs})),
        plan_(plan_fusion(
            graph,
            {.attention = true, .attention_sums = machine.search.sums, .attention_costs = machine.search.costs})) {}

  std::string run() {
    if (search_.reports.empty()) text_ = "this graph has no softmax\n";
    for (const AttentionReport& report : search_.reports) tell(report);
    for (std::size_t g = 0; g < search_.groups.size(); ++g)
      if (!told_.contains(g)) {
        text_ += fmt::format("gradient of an attention at {}: fused\n", line(search_.groups[g].consumers.front()));
        tell(g);
      }
    for (const ValueId gate : search_.gates)
      text_ += fmt::format(
          "exponentials at {}: no attention\n"
          "  no row is divided by their sum, as in a softmax: the products around {} run one by one\n",
          line(gate), node(gate));
    return text_;
  }

 private:
  std::string line(ValueId id) const { return graph_[id].loc.place(); }
  std::string node(ValueId id) const { return fmt::format("%{} {}", id.index, graph_[id].op->name.value); }

  void tell(const AttentionReport& report) {
    text_ += fmt::format("softmax at {}: {}\n", line(report.softmax), report.fused ? "fused" : "not fused");
    if (!report.attention)
      text_ += report.fused ? "  with products around it, though none sums its weights\n"
                            : "  it is no attention: no product sums its weights\n";
    if (!report.fused && !report.attention) return;
    if (!report.fused) {
      text_ += fmt::format("  {} ({} at {})\n", report.reason, node(report.at), line(report.at));
      return;
    }
    for (std::size_t g = 0; g < search_.groups.size(); ++g)
      if (search_.groups[g].dims.contains(report.softmax) && told_.insert(g).second) tell(g);
  }

  void tell(std::size_t number) {
    const AttentionGroup& group = search_.groups[number];
    const auto scores = static_cast<std::size_t>(std::count_if(
        group.members.begin(), group.members.end(), [&](ValueId id) { return graph_[id].op->as<Contraction>(); }));
    const bool sums =
        std::any_of(group.members.begin(), group.members.end(), [&](ValueId id) { return sums_exp(id); });
    text_ += fmt::format("  {} over {}: {} scores, {} what became of them; rows run along {}\n",
                         sums ? "one kernel" : "one kernel, its scores computed again,", group.domain.to_string(),
                         counted(scores, "product makes", "products make"),
                         counted(group.consumers.size(), "product sums", "products sum"),
                         group.domain[group.row].to_string());
    std::string rows, squares;
    for (const ValueId id : group.members) {
      if (!plan_.is_stored(id)) continue;
      std::string& list = covers(group, id) ? squares : rows;
      list += (list.empty() ? "" : ", ") + node(id);
    }
    for (const ValueId id : group.sums)
      text_ += fmt::format("    added up as its outer dims go by: {} {}\n", node(id), graph_[id].type.to_string());
    if (!rows.empty()) text_ += fmt::format("    kept of each row: {}\n", rows);
    if (squares.empty())
      text_ += "    nothing over rows and columns is stored\n";
    else
      text_ += fmt::format("    stored over rows and columns, because something else reads it: {}\n", squares);
    if (machine_.tell) text_ += machine_.tell(graph_, group);
  }

  bool sums_exp(ValueId id) const {
    return std::any_of(search_.reports.begin(), search_.reports.end(),
                       [&](const AttentionReport& report) { return report.softmax == id; });
  }

  bool covers(const AttentionGroup& group, ValueId id) const {
    const std::vector<int>& dims = group.dims.at(id);
    const auto has = [&](int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
    return has(group.row) && has(group.domain.rank() - 1);
  }

  const Graph& graph_;
  const AttentionMachine& machine_;
  AttentionSearch search_;
  FusionPlan plan_;
  std::set<std::size_t> told_;
  std::string text_;
};

}  // namespace

std::string explain_attention(const Graph& graph, AttentionCosts costs) {
  return explain_attention(graph, {.search = {.sums = OuterSums::wide, .costs = costs, .blocks = true}});
}

std::string explain_attention(const Graph& graph, const AttentionMachine& machine) {
  const AttentionOptions& search = machine.search;
  const Graph prepared =
      recompute_attention(prepare_for_fusion(graph), {.costs = search.costs, .blocks = search.blocks});
  return Explanation(prepared, machine).run();
}

void require_fused_attention(const Graph& prepared) {
  for (const AttentionReport& report : find_attention(prepared).reports) {
    if (!report.attention || report.fused) continue;
    const Node& at = prepared[report.at];
    throw UserError(prepared[report.softmax].loc, "softmax",
                    fmt::format("this attention is not fused: {} (%{} {} at {})", report.reason, report.at.index,
                                at.op->name.value, at.loc.to_string()),
                    "attention_unfused", "change the expression there, or do not require fused attention");
  }
}

Pass require_attention_pass() {
  return {"require-attention", "an attention that is not fused is an error", [](Graph graph) {
            require_fused_attention(graph);
            return graph;
          }};
}

}  // namespace lathe
