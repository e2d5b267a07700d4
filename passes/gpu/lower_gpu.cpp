#include "passes/gpu/lower_gpu.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "ir/ops/list.h"
#include "passes/fusion/prepare/narrow_views.h"
#include "passes/fusion/prepare/pad_products.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/lower.h"

namespace lathe {

namespace {

std::vector<KernelContext::Built> one(KernelContext::Built built) {
  std::vector<KernelContext::Built> result;
  result.push_back(std::move(built));
  return result;
}

bool reduces(const LoweringContext& context, const Region& region) {
  return std::any_of(region.members.begin(), region.members.end(),
                     [&](ir::ValueId id) { return context.graph[id].op->as<ir::Reduce>() != nullptr; });
}

template <bool warpgroups>
std::vector<KernelContext::Built> region_kernels(const LoweringContext& context, const Region& region) {
  if (region.kind == RegionKind::product)
    return gpu::suits_tensor_cores(context, region) ? gpu::lower_tensor_product(context, region, warpgroups)
                                                    : gpu::lower_product(context, region);
  if (region.kind == RegionKind::columns) return gpu::lower_columns(context, region);
  if (region.kind == RegionKind::scatter)
    return context.graph[region.members[0]].op == &ir::ops::update_rows ? gpu::lower_update_rows(context, region)
                                                                        : gpu::lower_scatter(context, region);
  if (region.kind == RegionKind::attention) return gpu::lower_attention(context, region, warpgroups);
  LATHE_ASSERT(region.kind == RegionKind::rows);
  if (reduces(context, region)) return gpu::lower_rows(context, region);
  return one(gpu::lower_points(context, region));
}

/// The last few ops of a launch, and the line of the last: "_softmax_mul_mha_cpp_14".
std::string origin(const Launch& launch) {
  constexpr std::size_t most = 3;
  std::vector<std::string> ops;
  for (const std::string& described : launch.names) {  // "%5 softmax", "%5 softmax weights", "copy W"
    const auto start = described.find(' ') + 1;
    const std::string op = described.substr(start, described.find(' ', start) - start);
    if (described[0] == '%' && (ops.empty() || ops.back() != op)) ops.push_back(op);
  }
  if (ops.size() > most) ops.erase(ops.begin(), ops.end() - most);
  std::string text;
  for (const std::string& op : ops) text += "_" + op;
  const std::string place = launch.loc.to_string();
  if (!ops.empty() && !place.empty()) text += "_" + place;
  return text;
}

/// Kernels are named after what they compute.
void name_kernels(Program& program) {
  std::set<int> named;
  for (const Launch& launch : program.launches) {
    if (!named.insert(launch.kernel).second) continue;
    std::string& name = program.kernels[static_cast<std::size_t>(launch.kernel)].name;
    name += origin(launch);
    for (char& c : name)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
}

}  // namespace

Machine gpu_machine(bool warpgroups) {
  return {.vectors = gpu::vectors,
          .region = warpgroups ? region_kernels<true> : region_kernels<false>,
          .copy = gpu::lower_copy,
          .fusion = {.attention_sums = OuterSums::all, .copied_operands = true},
          .chunks = RowChunks::gpu(),
          .passes = {{"narrow-views", "values are cast to bf16 or f16 before their views", narrow_views},
                     {"pad-products", "odd sizes that products of bf16 and f16 sum over are padded", pad_products}},
          .finish = name_kernels};
}

Program lower_gpu(const ir::Graph& graph, const LowerOptions& options) {
  return lower(graph, gpu_machine(false), options);
}

Program lower_gpu_sm_90a(const ir::Graph& graph, const LowerOptions& options) {
  return lower(graph, gpu_machine(true), options);
}

}  // namespace lathe
