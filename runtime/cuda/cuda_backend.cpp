#include "runtime/cuda/cuda_backend.h"

#include <fmt/core.h>

#include <algorithm>

#include "codegen/cuda/emitter.h"
#include "ir/kernel/printer.h"
#include "ir/support/error.h"
#include "passes/machines/gpu_machine.h"
#include "passes/program/phase_kernels.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/library/cuda_library.h"
#include "runtime/cuda/platform.h"
#include "runtime/cuda/ranks/device_groups.h"
#include "runtime/cuda/ranks/rank_platform.h"

namespace lathe::cuda {

namespace {

constexpr std::string_view any_arch = "cuda", one_arch = "cuda:";

/// The architecture that a target's name asks for; nothing for the device's own.
std::optional<Arch> arch_of(std::string_view target) {
  if (target == any_arch) return std::nullopt;
  return Arch::named(target.substr(one_arch.size()));
}

Machine machine_for(const std::optional<Arch>& arch, const gpu::GpuSizes& sizes) {
  const GpuInfo gpu = gpu_info(arch ? arch->name() : std::string());
  Machine machine = gpu_machine(gpu, sizes);
  const std::string name = arch ? std::string(one_arch) + arch->name() : std::string(any_arch);
  machine.code = {
      {.name = "driver",
       .doc = "the functions of a C library that launch the kernels, as LLVM IR",
       .comment = ";",
       .print_program = [name](const Program& program,
                               const DimBindings& sizes) { return cuda_driver_text(plan_of(program, name, sizes)); }},
      {"cuda", "kernels as CUDA C++", "//", [gpu](const kernel::Kernel& kernel) { return emit(kernel, gpu); }}};
  return machine;
}

class CudaDevice : public Device {
 public:
  CudaDevice(std::shared_ptr<const Platform> platform, const std::optional<Arch>& asked, const gpu::GpuSizes& sizes,
             const DeviceOptions& options)
      : platform_(std::move(platform)), arch_(arch_of_device(*platform_, asked)), sizes_(sizes), options_(options) {}

  Machine machine() const override { return machine_for(arch_, sizes_); }

  LoadedProgram load(const Program& program, const LoadOptions& options) const override {
    const std::vector<bool> only_phases = only_in_phases(program);
    std::vector<kernel::Kernel> launched;
    for (std::size_t k = 0; k < program.kernels.size(); ++k)
      if (!only_phases[k]) launched.push_back(program.kernels[k]);
    std::vector<CompiledKernel> compiled =
        platform_->compile(launched, arch_, options_.cache, Indices::int32, options_.compiling_threads);
    const auto stored = static_cast<int>(std::ranges::count_if(compiled, &CompiledKernel::from_store));
    std::vector<CompiledKernel> kernels(program.kernels.size());
    auto next = compiled.begin();
    for (std::size_t k = 0; k < kernels.size(); ++k)
      if (!only_phases[k]) kernels[k] = std::move(*next++);
    return {.runner = make_cuda_runner(program, kernels, platform_, arch_,
                                       {.threads = options_.compiling_threads, .skipped = options.skipped}),
            .compiled = static_cast<int>(launched.size()) - stored,
            .from_cache = stored};
  }

  std::string code_key(const kernel::Kernel& kernel) const override { return kernel::canonical_text(kernel); }

  std::string tuning_key() const override { return fmt::format("{} {}", description(), arch_.name()); }

  Claim claim() const override {
    return {"the target GPU", arch_.name(), "give all ranks the lowest one, such as --target cuda:sm_80"};
  }

  bool plans_reserved_sizes() const override { return false; }

  std::string description() const override { return platform_->driver->device_name(platform_->device); }

  DeviceRates rates() const override {
    const Driver::Peak peak = platform_->driver->peak(platform_->device);
    return {.flops = peak.flops, .bytes = peak.bytes, .unit = "f32"};
  }

 private:
  std::shared_ptr<const Platform> platform_;
  Arch arch_;
  gpu::GpuSizes sizes_;
  DeviceOptions options_;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(std::shared_ptr<const Platform> platform, const gpu::GpuSizes& sizes)
      : platform_(std::move(platform)), sizes_(sizes) {}

  std::string_view kind() const override { return "a GPU"; }

  bool knows(std::string_view target) const override { return target == any_arch || target.starts_with(one_arch); }
  std::string names() const override { return "cuda, or a GPU architecture such as cuda:sm_90a"; }
  void check(std::string_view target) const override { arch_of(target); }

  Machine machine(std::string_view target) const override { return machine_for(arch_of(target), sizes_); }

  std::unique_ptr<Device> open(std::string_view target, const DeviceOptions& options) const override {
    const auto platform = platform_ ? platform_ : local(options.ranks, {});
    const DeviceGroups* groups = platform->groups.get();
    if (options.ranks && (!groups || &groups->ranks() != options.ranks.get()))
      throw UserError("compile: the given GPU does not belong to the ranks", "compile_options",
                      "pass the platform of cuda::platform_of_rank, or none to use it by default");
    return std::make_unique<CudaDevice>(platform, arch_of(target), sizes_, options);
  }

  EmittedLibrary emit(const LibraryPlan& plan) const override { return emit_cuda_library(plan); }

  std::shared_ptr<const Backend> bind(const std::shared_ptr<Ranks>& ranks,
                                      const std::vector<std::filesystem::path>& folders) const override {
    return std::make_shared<CudaBackend>(local(ranks, folders), sizes_);
  }

 private:
  static std::shared_ptr<const Platform> local(const std::shared_ptr<Ranks>& ranks,
                                               const std::vector<std::filesystem::path>& folders) {
    return ranks ? platform_of_rank(ranks, folders) : local_platform(folders);
  }

  std::shared_ptr<const Platform> platform_;
  gpu::GpuSizes sizes_;
};

}  // namespace

std::shared_ptr<const Backend> cuda_backend(std::shared_ptr<const Platform> platform, const gpu::GpuSizes& sizes) {
  return std::make_shared<CudaBackend>(std::move(platform), sizes);
}

}  // namespace lathe::cuda
