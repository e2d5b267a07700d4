#include "passes/explain/explain_products.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/kernel/intrinsics/region.h"
#include "ir/tensor/op/op.h"
#include "passes/program/program_loops.h"

namespace lathe {

namespace {

/// Returns the contraction that a launch computes, or nullptr if there is none or it is part of an attention.
const LaunchOp* product_of(const Launch& launch) {
  if (launch.info.role != KernelRole::product || launch.flops.is(0)) return nullptr;
  const auto& ops = launch.info.ops;
  const auto found =
      std::find_if(ops.begin(), ops.end(), [](const LaunchOp& op) { return op.op && op.op->as<ir::Contraction>(); });
  return found == ops.end() ? nullptr : &*found;
}

std::string_view units(Multiplier multiplier, bool of_gpu) {
  return of_gpu && !is_tensor_core(multiplier) ? "no tensor cores" : words(multiplier);
}

/// Whether threads of their own run the kernel's epilogues during later products.
bool overlaps_epilogue(const kernel::Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const kernel::Statement& s) { return kernel::leads_to(s, kernel::RunBy::last); });
}

}  // namespace

std::string explain_products(const Program& program, bool of_gpu) {
  std::vector<const Launch*> first;
  std::map<int, Dim> times;
  for (std::size_t l = 0; l < program.launches.size(); ++l) {
    const Launch& launch = program.launches[l];
    if (!product_of(launch)) continue;
    const Dim runs = runs_of(program, static_cast<int>(l));
    const auto [known, is_new] = times.try_emplace(launch.kernel, runs);
    if (is_new)
      first.push_back(&launch);
    else
      known->second = known->second + runs;
  }
  std::string text;
  for (const Launch* launch : first) {
    const LaunchOp& product = *product_of(*launch);
    const Dim& count = times.at(launch->kernel);
    const kernel::Kernel& kernel = program.kernels[launch->kernel];
    text += fmt::format("product {} {}: {}{}{}, {} multiplications and additions, by {}\n", product.to_string(),
                        product.loc.to_string(), units(launch->info.multiplier, of_gpu),
                        overlaps_epilogue(kernel) ? " and others for the epilogue" : "",
                        count.is(1) ? "" : fmt::format(", {} times", count.to_string()), launch->flops.to_string(),
                        kernel.name);
    for (const MissedPath& missed : launch->info.missed) text += fmt::format("  {}\n", missed.to_string());
  }
  return text;
}

}  // namespace lathe
