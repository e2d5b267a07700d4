#include "tools/options/target_option.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "ir/support/nearest.h"
#include "runtime/cuda/platform.h"
#include "runtime/cuda/ranks/rank_platform.h"
#include "runtime/machine/peak.h"
#include "tools/environment.h"
#include "tools/options/number_option.h"

namespace lathe::tools {

CLI::Option* add_target_option(CLI::App& command, std::string& target) {
  return command
      .add_option("--target", target,
                  fmt::format("Target to compile for: {}, cuda, or a GPU architecture such as cuda:sm_90a; "
                              "host,-amx-bf16 disables AMX",
                              list_of(codegen::TargetCpu::names())))
      ->capture_default_str();
}

CLI::Option* add_threads_option(CLI::App& command, int& threads, const std::string& doc) {
  return between(command.add_option("--threads", threads, doc), 0, 1024)->capture_default_str();
}

CompileOptions compile_options(const std::string& target, const std::shared_ptr<Ranks>& ranks) {
  CompileOptions options{.target = Target::named(target)};
  if (options.target.kind == Target::Kind::cuda)
    options.gpu = ranks ? cuda::platform_of_rank(ranks, cuda_folders()) : cuda::local_platform(cuda_folders());
  return options;
}

std::string machine_name(const CompileOptions& options, int threads) {
  if (options.gpu) return options.gpu->driver->device_name(options.gpu->device);
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

MachineRates machine_rates(const CompileOptions& options, int threads) {
  if (!options.gpu)
    return {.flops = measure_fma_peak(threads).best,
            .bytes = measure_read_bandwidth(threads, bandwidth_probe_bytes()).best};
  const cuda::Driver::Peak peak = options.gpu->driver->peak(options.gpu->device);
  return {.flops = peak.flops, .bytes = peak.bytes};
}

}  // namespace lathe::tools
