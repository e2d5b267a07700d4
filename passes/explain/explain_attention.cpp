#include "passes/explain/explain_attention.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "ir/tensor/op/op.h"
#include "passes/explain/explain_joined.h"
#include "passes/explain/explain_products.h"
#include "passes/fusion/attention/fuse_attention.h"

namespace lathe {

using namespace ir;

namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::int64_t shared_bytes(const kernel::Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const kernel::BufferInfo& buffer : kernel.buffers)
    if (buffer.space == kernel::Space::shared)
      bytes += buffer.count * static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
  return bytes;
}

/// Describes the first matmul that prevents tensor cores: all factors must have the same 16-bit dtype.
std::string why_not_on_tensor_cores(const Graph& graph, const AttentionGroup& group) {
  std::vector<ValueId> products;
  for (const ValueId id : group.members)
    if (graph[id].op->as<Contraction>()) products.push_back(id);
  products.insert(products.end(), group.consumers.begin(), group.consumers.end());
  const DType first = graph[graph[products.front()].operands[0]].type.dtype;
  for (const ValueId id : products) {
    const Node& product = graph[id];
    const DType left = graph[product.operands[0]].type.dtype, right = graph[product.operands[1]].type.dtype;
    if (left == right && left == first && (first == bf16 || first == f16)) continue;
    return fmt::format("%{} {} multiplies {} and {} ({})", id.index, product.op->name.value, lathe::name(left),
                       lathe::name(right), product.loc.to_string());
  }
  return "";
}

class Explanation {
 public:
  Explanation(const Lowered& lowered, bool gpu)
      : graph_(lowered.graph),
        plan_(lowered.regions),
        search_(*lowered.regions.attentions),
        program_(lowered.program),
        gpu_(gpu) {}

  std::string run() {
    if (search_.reports.empty()) text_ = "this graph has no softmax\n";
    for (const AttentionReport& report : search_.reports) describe(report);
    for (std::size_t g = 0; g < search_.groups.size(); ++g)
      if (!described_.contains(g)) {
        text_ += fmt::format("gradient of an attention at {}: fused\n", line(search_.groups[g].consumers.front()));
        describe(g);
      }
    for (const ValueId gate : search_.gates)
      text_ += fmt::format(
          "exponentials at {}: no attention\n"
          "  no row is divided by its sum, unlike in a softmax: the matmuls around {} run separately\n",
          line(gate), node(gate));
    return text_;
  }

 private:
  std::string line(ValueId id) const { return graph_[id].loc.place(); }
  std::string node(ValueId id) const { return fmt::format("%{} {}", id.index, graph_[id].op->name.value); }

  void describe(const AttentionReport& report) {
    text_ += fmt::format("softmax at {}: {}\n", line(report.softmax), report.fused ? "fused" : "not fused");
    if (!report.attention)
      text_ += report.fused ? "  with adjacent matmuls, although none multiplies its weights\n"
                            : "  it is not an attention: no matmul multiplies its weights\n";
    if (!report.fused && !report.attention) return;
    if (!report.fused) {
      text_ += fmt::format("  {} ({} at {})\n", report.reason, node(report.at), line(report.at));
      return;
    }
    for (std::size_t g = 0; g < search_.groups.size(); ++g)
      if (search_.groups[g].dims.contains(report.softmax) && described_.insert(g).second) describe(g);
  }

  void describe(std::size_t number) {
    const AttentionGroup& group = search_.groups[number];
    const auto scores = static_cast<std::size_t>(std::count_if(
        group.members.begin(), group.members.end(), [&](ValueId id) { return graph_[id].op->as<Contraction>(); }));
    const bool sums =
        std::any_of(group.members.begin(), group.members.end(), [&](ValueId id) { return sums_exp(id); });
    text_ += fmt::format(
        "  {} over {}: {} for scores, {}; {}\n", sums ? "one kernel" : "one kernel, which recomputes the scores,",
        group.domain.to_string(), counted(scores, "matmul", "matmuls"),
        counted(group.consumers.size(), "output matmul", "output matmuls"),
        group.domain[group.row].is(1) ? "one row"
                                      : fmt::format("rows along {}", group.domain[group.row].to_string()));
    std::string rows, squares;
    for (const ValueId id : group.members) {
      if (!plan_.is_stored(id)) continue;
      std::string& list = covers(group, id) ? squares : rows;
      list += (list.empty() ? "" : ", ") + node(id);
    }
    for (const ValueId id : group.sums)
      text_ += fmt::format("    accumulated over its outer dims: {} {}\n", node(id), graph_[id].type.to_string());
    if (!rows.empty()) text_ += fmt::format("    stored per row: {}\n", rows);
    if (squares.empty())
      text_ += "    nothing of size rows x columns is stored\n";
    else
      text_ += fmt::format("    stored with size rows x columns, because other ops read it: {}\n", squares);
    describe_kernels(group);
  }

  /// Prints the kernels that run a group, with their multipliers.
  void describe_kernels(const AttentionGroup& group) {
    bool by_tensor_cores = false;
    for (const Launch& launch : program_.launches) {
      if (!launch.runs(group.consumers.front())) continue;
      const kernel::Kernel& kernel = program_.kernels[launch.kernel];
      if (!gpu_) {
        text_ += fmt::format("    by {}: {}\n", kernel.name, words(launch.info.multiplier));
        for (const MissedPath& missed : launch.info.missed) text_ += fmt::format("    {}\n", missed.to_string());
        continue;
      }
      const bool tensor_cores = is_tensor_core(launch.info.multiplier);
      by_tensor_cores = by_tensor_cores || tensor_cores;
      text_ += fmt::format("    by {}: {}{}{} bytes of shared memory per block\n", kernel.name,
                           launch.info.multiplier == Multiplier::wgmma ? "warpgroups, " : "",
                           tensor_cores ? "tensor cores, " : "", shared_bytes(kernel));
      if (!tensor_cores) continue;
      for (const MissedPath& missed : launch.info.missed) text_ += fmt::format("    {}\n", missed.to_string());
    }
    if (gpu_ && !by_tensor_cores)
      text_ += fmt::format("    not by tensor cores, which multiply only bf16 or f16: {}\n",
                           why_not_on_tensor_cores(graph_, group));
  }

  bool sums_exp(ValueId id) const {
    return std::any_of(search_.reports.begin(), search_.reports.end(),
                       [&](const AttentionReport& report) { return report.softmax == id; });
  }

  bool covers(const AttentionGroup& group, ValueId id) const {
    const std::vector<int>& dims = group.dims.at(id);
    const auto has = [&](int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
    return (has(group.row) || group.domain[group.row].is(1)) && has(group.domain.rank() - 1);
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const AttentionSearch& search_;
  const Program& program_;
  bool gpu_;
  std::set<std::size_t> described_;
  std::string text_;
};

}  // namespace

std::string explain_attention(const Lowered& lowered, const HardwareInfo& machine) {
  LATHE_ASSERT(lowered.regions.attentions);
  return Explanation(lowered, std::holds_alternative<GpuInfo>(machine)).run();
}

std::string explain_fusion(const Lowered& lowered, const HardwareInfo& machine) {
  const std::string text = explain_attention(lowered, machine);
  return text + explain_products(lowered.program, std::holds_alternative<GpuInfo>(machine)) +
         explain_joined(lowered.program);
}

}  // namespace lathe
