#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "codegen/cuda/nvrtc.h"
#include "codegen/llvm/jit.h"
#include "codegen/llvm/target_cpu.h"
#include "ir/support/error.h"
#include "passes/memory/memory_plan.h"
#include "runtime/backend/backend.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/ranks/nccl.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/peak.h"
#include "tools/commands/commands.h"
#include "tools/environment.h"
#include "tools/inputs/files.h"
#include "tools/options/target_option.h"

namespace lathe::tools {

namespace {

std::string row(std::string_view what, std::string_view text) { return fmt::format("{:<12} {}\n", what, text); }

/// Joins the lines of an error message: the missing component, and how to get it.
std::string one_line(const UserError& error) {
  std::string text;
  for (const char c : std::string_view(error.what()))
    if (c != '\n')
      text += c;
    else if (!text.empty())
      text += ';';
  return text;
}

std::string nvrtc_text() {
  try {
    const cuda::Nvrtc nvrtc(cuda_folders());
    return fmt::format("{} ({}), for sm_{}", nvrtc.version(), nvrtc.library(),
                       fmt::join(nvrtc.architectures(), ", sm_"));
  } catch (const UserError& error) {
    return one_line(error);
  }
}

std::string nccl_text() {
  try {
    const cuda::Nccl nccl(cuda::nccl_candidates(cuda_folders()));
    return fmt::format("{} ({})", nccl.version(), nccl.library());
  } catch (const UserError& error) {
    return one_line(error);
  }
}

std::string driver_text() {
  try {
    const auto driver = cuda::load_driver();
    std::string text;
    for (int i = 0; i < driver->device_count(); ++i) {
      const cuda::Driver::Peak peak = driver->peak(i);
      text += fmt::format("{}device {}: {}, sm_{}, {}, peak {:.1f} TFLOP/s of f32 multiply-adds, {:.2f} TB/s",
                          i > 0 ? "; " : "", i, driver->device_name(i), driver->compute_capability(i),
                          format_bytes(static_cast<std::int64_t>(driver->total_memory(i))), peak.flops * 1e-12,
                          peak.bytes * 1e-12);
    }
    return text.empty() ? "installed, but no GPU is found" : text;
  } catch (const UserError& error) {
    return one_line(error);
  }
}

std::string cache_text() {
  const DiskCache cache(cache_folder());
  if (!cache.enabled()) return "off: " + cache.disabled_reason();
  return cache.folder().string();
}

std::string measured(int threads) {
  const auto giga = [](double rate) { return rate * 1e-9; };
  std::string text;
  for (const int n : {1, threads}) {
    const Rate fma = measure_fma_peak(n, 0.3), read = measure_read_bandwidth(n, bandwidth_probe_bytes(), 0.3);
    text += row(fmt::format("{} thread{}", n, n == 1 ? "" : "s"),
                fmt::format("{:.1f} GFLOP/s of f32 multiply-adds, {:.1f} GB/s read from memory", giga(fma.best),
                            giga(read.best)));
    if (threads == 1) return text;
  }
  return text + row("core to core", fmt::format("{:.0f} ns round trip", measure_core_round_trip() * 1e9));
}

/// Returns the target facts that schedules and cost estimates use.
std::string described(const std::string& target) {
  const HardwareInfo info = machine_of(Target::named(target)).info;
  return std::visit(
      [&](const auto& is) { return fmt::format("schedules for {} assume {}:\n{}", target, is.name, to_string(is)); },
      info);
}

void run(bool measure) {
  const HostCpu cpu = host_cpu();
  const VectorUnit unit = widest_vector_unit();
  const codegen::TargetCpu target = codegen::TargetCpu::host();
  std::string text = cpu.to_string();
  if (text.empty() || text.back() != '\n') text += '\n';
  text += row("vectors", fmt::format("{}, {} f32 per register{}", unit.name, unit.lanes, unit.fma ? ", FMA" : ""));
  text += row("threads", fmt::format("{} usable by this process", usable_cpus()));
  text += row("memory", fmt::format("{:.1f} GiB", static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                                                      static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30)));
  text += row("LLVM", fmt::format("{}, target {} with {}-bit vectors", codegen::llvm_version(), target.cpu,
                                  target.vector_bits));
  text += row("AMX", target.has_tiles()    ? "bf16 matmuls"
                     : cpu.has("amx_bf16") ? "not available: the operating system denies it to this process"
                                           : "none");
  text += row("NVRTC", nvrtc_text());
  text += row("NCCL", nccl_text());
  text += row("driver", driver_text());
  text += row("cache", cache_text());
  text += described("host");
  if (measure) text += measured(usable_cpus());
  write_text("-", text);
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto measure = std::make_shared<bool>(false);
  auto target = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("doctor", "Report the features of this machine: CPU, LLVM, NVRTC, driver, cache");
  CLI::Option* measured =
      command->add_flag("--measure", *measure, "Also measure arithmetic and memory rates; takes about 2 seconds");
  add_target_option(*command, *target)->excludes(measured);
  command->footer(
      "With --target, prints the hardware facts that code for the target assumes. It need not be this machine.");
  command->callback([measure, target] { target->empty() ? run(*measure) : write_text("-", described(*target)); });
}

}  // namespace lathe::tools
