#include "runtime/cuda/kernel_variants.h"

#include <fmt/core.h>

#include <optional>
#include <tuple>

#include "codegen/cuda/mapping.h"
#include "ir/kernel/verify/parameter_use.h"
#include "ir/support/error.h"

namespace lathe::cuda {

KernelVariants::KernelVariants(const Program& program, std::span<const CompiledKernel> kernels,
                               const Platform& platform, const Arch& arch, int threads)
    : program_(program), platform_(platform), arch_(arch), gpu_(gpu_info(arch.name())), threads_(threads) {
  for (std::size_t k = 0; k < kernels.size(); ++k)
    if (!kernels[k].code.empty())
      kernels_.emplace(static_cast<int>(k), LoadedKernel(*platform.driver, program.kernels[k], gpu_, kernels[k]));
}

/// Returns the parameters of a launch that start between multiples of 16 bytes in some iteration.
std::vector<int> KernelVariants::unaligned_parameters(const Launch& launch, std::span<const BoundLoop> loops) const {
  constexpr std::int64_t assumed = 16;  // bytes; the prelude's load_aligned and store_aligned
  const auto is_moved = [&](int buffer) {
    const auto moves = [&](const BoundLoop& loop, const BoundLoop::Slice& slice) {
      return slice.buffer == buffer && loop.trips > 1 && slice.bytes % assumed != 0;
    };
    for (const BoundLoop& loop : loops)
      for (const BoundLoop::Slice& slice : loop.slices)
        if (moves(loop, slice)) return true;
    return false;
  };
  std::vector<int> found;
  for (std::size_t p = 0; p < launch.buffers.size(); ++p)
    for (int buffer = launch.buffers[p]; program_.buffers[buffer].slice; buffer = program_.buffers[buffer].slice->of)
      if (is_moved(buffer)) {
        found.push_back(static_cast<int>(p));
        break;
      }
  return found;
}

KernelVariants::Variant KernelVariants::variant_of(const Launch& launch, std::span<const std::int64_t> dims,
                                                   std::span<const BoundLoop> loops) const {
  const kernel::Kernel& kernel = program_.kernels[launch.kernel];
  const bool fits = int32_suffices(kernel, gpu_, dims);
  Variant variant{launch.kernel, fits ? Indices::int32 : Indices::int64, unaligned_parameters(launch, loops)};
  if (variant.unaligned.empty()) return variant;
  const kernel::ParameterUse use = kernel::parameter_use(kernel);
  for (const int p : variant.unaligned)
    if (use.alignment[p] > 1)
      throw InternalError(fmt::format(
          "kernel {}: the parameter {} must start at a multiple of {} bytes, and is a slice that does not",
          kernel.name, p, use.alignment[p]));
  return variant;
}

void KernelVariants::compile(const std::set<Variant>& variants, Indices indices) {
  std::vector<kernel::Kernel> kernels;
  std::vector<const Variant*> missing;
  for (const Variant& variant : variants) {
    if (variant.indices != indices || variants_.contains(variant)) continue;
    missing.push_back(&variant);
    kernels.push_back(program_.kernels[variant.kernel]);
    for (const int p : variant.unaligned) kernels.back().buffers[p].unaligned = true;
  }
  if (missing.empty()) return;
  const auto compiled = platform_.compile(kernels, arch_, nullptr, indices, threads_);
  for (std::size_t i = 0; i < missing.size(); ++i)
    variants_.emplace(*missing[i], LoadedKernel(*platform_.driver, kernels[i], gpu_, compiled[i]));
}

std::vector<const LoadedKernel*> KernelVariants::choose(std::span<const Launch* const> launches,
                                                        std::span<const std::vector<std::int64_t>> dims,
                                                        const std::vector<bool>& skipped,
                                                        std::span<const BoundLoop> loops) {
  std::vector<std::optional<Variant>> chosen(launches.size());
  std::set<Variant> needed;
  std::map<std::tuple<int, std::vector<std::int64_t>, std::vector<int>>, Variant> known;
  for (std::size_t l = 0; l < launches.size(); ++l) {
    if (skipped[l]) continue;
    const Launch& launch = *launches[l];
    const std::tuple key{launch.kernel, dims[l], loops.empty() ? std::vector<int>{} : launch.buffers};
    auto at = known.find(key);
    if (at == known.end()) at = known.emplace(key, variant_of(launch, dims[l], loops)).first;
    chosen[l] = at->second;
    if (!is_plain(at->second) || !kernels_.contains(launch.kernel)) needed.insert(at->second);
  }
  for (const Indices indices : {Indices::int32, Indices::int64}) compile(needed, indices);
  std::vector<const LoadedKernel*> found;
  for (const std::optional<Variant>& variant : chosen) {
    if (!variant) {
      found.push_back(nullptr);
      continue;
    }
    const auto own = variants_.find(*variant);
    found.push_back(own == variants_.end() ? &kernels_.at(variant->kernel) : &own->second);
  }
  return found;
}

}  // namespace lathe::cuda
