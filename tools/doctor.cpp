#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "codegen/llvm/jit.h"
#include "codegen/llvm/target_cpu.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/machine/cpu_info.h"
#include "runtime/machine/peak.h"
#include "tools/commands.h"
#include "tools/environment.h"
#include "tools/files.h"

namespace lathe::tools {

namespace {

/// A shared library for as long as this object lives.
class Library {
 public:
  explicit Library(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  explicit operator bool() const { return handle_ != nullptr; }
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

std::string row(std::string_view what, std::string_view text) { return fmt::format("{:<12} {}\n", what, text); }

std::string nvrtc_text() {
  for (const char* name : {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"}) {
    const Library library(name);
    auto* version = library ? library.find<int(int*, int*)>("nvrtcVersion") : nullptr;
    int major = 0, minor = 0;
    if (version && version(&major, &minor) == 0) return fmt::format("{}.{} ({})", major, minor, name);
  }
  return "not found: CUDA code cannot be compiled here";
}

/// Version of the driver and names of the devices. Handles of the driver API are plain ints.
std::string driver_text() {
  const Library library("libcuda.so.1");
  if (!library) return "no CUDA driver: kernels run on the CPU";
  auto* init = library.find<int(unsigned)>("cuInit");
  auto* version = library.find<int(int*)>("cuDriverGetVersion");
  auto* count = library.find<int(int*)>("cuDeviceGetCount");
  auto* device_name = library.find<int(char*, int, int)>("cuDeviceGetName");
  int number = 0, devices = 0;
  if (!init || !version || !count || !device_name || version(&number) != 0) return "libcuda.so.1 does not answer";
  std::string text = fmt::format("CUDA {}.{}", number / 1000, number % 1000 / 10);
  if (init(0) != 0 || count(&devices) != 0 || devices == 0) return text + ", no device";
  for (int i = 0; i < devices; ++i) {
    char name[128] = "";
    if (device_name(name, sizeof name, i) == 0) text += fmt::format(", device {}: {}", i, name);
  }
  return text;
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
    if (threads == 1) break;
  }
  return text;
}

void run(bool measure) {
  const CpuInfo cpu = cpu_info();
  const VectorUnit unit = widest_vector_unit();
  const codegen::TargetCpu target = codegen::TargetCpu::host();
  std::string text = cpu.to_string();
  if (text.empty() || text.back() != '\n') text += '\n';
  text += row("vectors", fmt::format("{}, {} f32 in a register{}", unit.name, unit.lanes, unit.fma ? ", FMA" : ""));
  text += row("threads", fmt::format("{} usable by this process", usable_cpus()));
  text += row("memory", fmt::format("{:.1f} GiB", static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                                                      static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30)));
  text += row("LLVM", fmt::format("{}, target {} with {}-bit vectors", codegen::llvm_version(), target.cpu,
                                  target.vector_bits));
  text += row("NVRTC", nvrtc_text());
  text += row("driver", driver_text());
  text += row("cache", cache_text());
  if (measure) text += measured(usable_cpus());
  write_text("-", text);
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto measure = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("doctor", "Tell what this machine offers: CPU, LLVM, NVRTC, driver, cache");
  command->add_flag("--measure", *measure, "Measure arithmetic and memory, about 2 seconds");
  command->callback([measure] { run(*measure); });
}

}  // namespace lathe::tools
