#include "runtime/cuda/library/cuda_library.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/library/cuda_header.h"
#include "runtime/cuda/library/gpu_library_machine.h"
#include "runtime/files/sha256.h"
#include "runtime/library/library_builder.h"

namespace lathe::cuda {

namespace {

/// Returns the architecture of a target: "cuda:sm_90a".
Arch arch_of_target(const std::string& target) {
  const std::size_t colon = target.find(':');
  return colon == std::string::npos ? Arch{} : Arch::named(target.substr(colon + 1));
}

codegen::Library code_of(const LibraryPlan& plan) {
  std::vector<Arch> archs;
  std::vector<codegen::LibraryLevel> levels;
  for (const std::string& target : plan.targets) {
    const Arch& arch = archs.emplace_back(arch_of_target(target));
    levels.push_back({.name = level_symbol(arch.name()),
                      .target = {.cpu = "x86-64", .features = {}},
                      .gpu = codegen::LibraryGpu{.capability = arch.number, .is_exact = arch.suffix == "a"}});
  }
  require_used_targets(plan.targets, [&](std::size_t later, std::size_t earlier) {
    const int low = archs[later].number, high = archs[earlier].number;
    return archs[later].suffix != "a" && low / 10 == high / 10 && low <= high;
  });
  return library_code(plan, GpuLibraryMachine(std::move(archs)), std::move(levels));
}

void compile_kernels_of(codegen::LibraryLevel& level, const Arch& arch, const Nvrtc& nvrtc, const LibraryPlan& plan) {
  for (const Indices indices : {Indices::int32, Indices::int64}) {
    std::vector<kernel::Kernel> kernels;
    std::vector<codegen::LibraryGpuKernel*> of;
    for (std::size_t k = 0; k < level.kernels.size(); ++k) {
      if (level.gpu->kernels[k].has_long_indices != (indices == Indices::int64)) continue;
      kernels.push_back(level.kernels[k]);
      of.push_back(&level.gpu->kernels[k]);
    }
    auto compiled = compile_kernels(nvrtc, kernels, arch, Output::cubin, plan.cache, plan.threads, indices);
    for (std::size_t k = 0; k < of.size(); ++k) {
      of[k]->symbol = std::move(compiled[k].symbol);
      of[k]->cubin = std::move(compiled[k].code);
    }
  }
}

}  // namespace

EmittedLibrary emit_cuda_library(const LibraryPlan& plan) {
  for (const std::string& target : plan.targets)
    if (target.find(':') == std::string::npos)
      throw UserError(fmt::format("a library cannot be compiled for {}, the GPU of this machine", target),
                      "library_target", "give the exact architecture, such as cuda:sm_90a");
  codegen::Library code = code_of(plan);
  const Nvrtc nvrtc(plan.cuda_folders);
  std::size_t kernels = 0;
  for (std::size_t l = 0; l < code.levels.size(); ++l) {
    compile_kernels_of(code.levels[l], arch_of_target(plan.targets[l]), nvrtc, plan);
    kernels = std::max(kernels, code.levels[l].kernels.size());
  }
  // The header has the number of kernels and the bytes of constants, which the description has not.
  LibraryPlan own = plan;
  const std::string interface =
      fmt::format("{}\ncooperative\n{}\n{}", plan.description, kernels, code.weights.size());
  own.init = code.init = fmt::format("{}_init_{}", plan.prefix, sha256_hex(interface).substr(0, 8));
  EmittedLibrary library = library_objects(code, plan.threads);
  library.init = own.init;
  library.header = {plan.prefix + ".h", c_header(own, CudaHeader(own, kernels, code.weights.size()))};
  return library;
}

std::string cuda_driver_text(const LibraryPlan& plan) { return codegen::driver_text(code_of(plan), 0); }

}  // namespace lathe::cuda
