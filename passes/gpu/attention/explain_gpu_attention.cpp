#include "passes/gpu/attention/explain_gpu_attention.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/tensor/op.h"
#include "passes/fusion/attention/explain_attention.h"
#include "passes/gpu/explain_gpu_products.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/lower_gpu.h"

namespace lathe {

using namespace ir;

namespace {

std::int64_t shared_bytes(const kernel::Kernel& kernel) {
  std::int64_t bytes = 0;
  for (const kernel::BufferInfo& buffer : kernel.buffers)
    if (buffer.space == kernel::Space::shared)
      bytes += buffer.count * static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
  return bytes;
}

/// The first product whose factors are not of the one narrow dtype that all have where tensor cores multiply.
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
    return fmt::format("%{} {} multiplies {} and {} ({})", id.index, product.op->name.value, name(left), name(right),
                       product.loc.to_string());
  }
  return "";
}

}  // namespace

std::string explain_gpu_attention(const Graph& given, bool warpgroups) {
  const Machine machine = gpu_machine(warpgroups);
  const Graph graph = apply_passes(machine.passes, given);
  const Program program = lower(given, machine);
  const auto tell = [&](const Graph& prepared, const AttentionGroup& group) {
    std::string text;
    bool by_tensor_cores = false;
    for (const Launch& launch : program.launches) {
      if (!launch.runs(group.consumers.front())) continue;
      const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
      const bool by_groups = multiplies_by_wgmma(kernel),
                 tensor_cores = by_groups || multiplies_on_tensor_cores(kernel);
      by_tensor_cores = by_tensor_cores || tensor_cores;
      text +=
          fmt::format("    by {}: {}{}{} bytes of shared memory a block\n", kernel.name,
                      by_groups ? "warpgroups, " : "", tensor_cores ? "tensor cores, " : "", shared_bytes(kernel));
      for (const std::string& note : kernel.notes)
        if (tensor_cores && note.starts_with(gpu::not_by_wgmma)) text += "    " + note + "\n";
    }
    if (!by_tensor_cores)
      text += fmt::format("    not by tensor cores, which take bf16 or f16 alone: {}\n",
                          why_not_on_tensor_cores(prepared, group));
    return text;
  };
  return explain_attention(graph, {.search = {.sums = OuterSums::all}, .tell = tell}) + explain_gpu_products(program);
}

}  // namespace lathe
