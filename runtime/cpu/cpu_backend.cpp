#include "runtime/cpu/cpu_backend.h"

#include <fmt/core.h>

#include <algorithm>

#include "codegen/llvm/jit.h"
#include "ir/support/nearest.h"
#include "passes/machines/cpu_machine.h"
#include "runtime/cpu/cpu_runner.h"
#include "runtime/cpu/library/cpu_library.h"
#include "runtime/files/sha256.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/peak.h"

namespace lathe {

namespace {

using codegen::TargetCpu;

/// `name` is the one that `cpu` was resolved from.
Machine machine_for(const TargetCpu& cpu, const std::string& name) {
  Machine machine = cpu_machine(cpu_info(cpu));
  machine.code = {
      {.name = "driver",
       .doc = "the function of a C library that runs the kernels, as LLVM IR",
       .comment = ";",
       .print_program = [name](const Program& program,
                               const DimBindings& sizes) { return cpu_driver_text(plan_of(program, name, sizes)); }},
      {"llvm", "kernels as LLVM IR", ";",
       [cpu](const kernel::Kernel& kernel) { return codegen::emit_llvm_ir(kernel, cpu); }},
      {"asm", "kernels as assembly", "#",
       [cpu](const kernel::Kernel& kernel) { return codegen::emit_assembly(kernel, cpu); }}};
  return machine;
}

class CpuDevice : public Device {
 public:
  CpuDevice(std::string_view name, const DeviceOptions& options)
      : name_(name), cpu_(TargetCpu::named(name)), options_(options) {}

  Machine machine() const override { return machine_for(cpu_, name_); }

  LoadedProgram load(const Program& program, const LoadOptions& options) const override {
    const codegen::JitOptions jit{.target = cpu_, .threads = options_.compiling_threads};
    codegen::CompiledKernels kernels = codegen::Jit(jit, options_.cache).compile(program.kernels);
    LoadedProgram loaded{
        .runner = nullptr, .compiled = kernels.stats().compiled, .from_cache = kernels.stats().from_store};
    loaded.runner = make_cpu_runner(program, std::move(kernels),
                                    {.threads = options_.threads,
                                     .own_threads = options_.own_threads,
                                     .poison = options.poison,
                                     .reserve = options.reserve,
                                     .skipped = options.skipped,
                                     .ranks = options_.ranks.get()});
    return loaded;
  }

  std::string code_key(const kernel::Kernel& kernel) const override { return codegen::object_key(kernel, cpu_); }

  std::string tuning_key() const override {
    return fmt::format("{}\n{} threads", host_cpu().model, options_.threads);
  }

  Claim claim() const override {
    return {"the target CPU", fmt::format("{} with features {}", cpu_.cpu, sha256_hex(cpu_.features).substr(0, 16)),
            "give all ranks the lowest one, such as --target x86-64-v3"};
  }

  bool plans_reserved_sizes() const override { return true; }

  std::string description() const override {
    return fmt::format("{} thread{}", options_.threads, options_.threads == 1 ? "" : "s");
  }

  DeviceRates rates() const override {
    return {.flops = measure_fma_peak(options_.threads).best,
            .bytes = measure_read_bandwidth(options_.threads, bandwidth_probe_bytes()).best,
            .unit = std::string(widest_vector_unit().name)};
  }

 private:
  std::string name_;
  TargetCpu cpu_;
  DeviceOptions options_;
};

class CpuBackend : public Backend {
 public:
  std::string_view kind() const override { return "a CPU"; }

  bool knows(std::string_view target) const override {
    return std::ranges::find(TargetCpu::names(), target.substr(0, target.find(','))) != TargetCpu::names().end();
  }
  std::string names() const override { return list_of(TargetCpu::names()); }
  void check(std::string_view target) const override { TargetCpu::named(target); }

  Machine machine(std::string_view target) const override {
    return machine_for(TargetCpu::named(target), std::string(target));
  }

  std::unique_ptr<Device> open(std::string_view target, const DeviceOptions& options) const override {
    return std::make_unique<CpuDevice>(target, options);
  }

  EmittedLibrary emit(const LibraryPlan& plan) const override { return emit_cpu_library(plan); }
};

}  // namespace

std::shared_ptr<const Backend> cpu_backend() { return std::make_shared<CpuBackend>(); }

CpuInfo cpu_info(const codegen::TargetCpu& cpu) { return cpu_info_for(cpu.cpu, cpu.features, cpu.vector_bits); }

}  // namespace lathe
