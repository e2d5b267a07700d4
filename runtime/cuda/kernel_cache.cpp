#include "runtime/cuda/kernel_cache.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/prelude/prelude.h"
#include "ir/kernel/phases.h"
#include "ir/support/share_jobs.h"
#include "runtime/files/sha256.h"

namespace lathe::cuda {

namespace {

/// Returns the text that is compiled, without comments, so that they do not affect the key.
std::string bare_text(kernel::Kernel kernel, const Arch& arch, Indices indices) {
  kernel.notes.clear();
  return emit(kernel, gpu_info(arch.name()), indices);
}

/// Returns a cache entry: the length of the ptxas log, the log, and the code.
std::string pack(const Compiled& compiled) {
  return fmt::format("{}\n{}{}", compiled.log.size(), compiled.log, compiled.code);
}

std::optional<Compiled> unpack(const std::string& entry) {
  const auto line = entry.find('\n');
  if (line == std::string::npos || line == 0 || line > 12) return std::nullopt;
  std::size_t size = 0;
  for (const char c : entry.substr(0, line)) {
    if (c < '0' || c > '9') return std::nullopt;
    size = size * 10 + static_cast<std::size_t>(c - '0');
  }
  if (size > entry.size() - line - 1) return std::nullopt;
  return Compiled{.code = entry.substr(line + 1 + size), .log = entry.substr(line + 1, size)};
}

CompiledKernel compile_one(const Nvrtc& nvrtc, const kernel::Kernel& kernel, const Arch& arch, Output output,
                           ObjectStore* store, Indices indices) {
  CompiledKernel result;
  result.symbol = symbol_of(kernel);
  const std::string key = store ? code_key(kernel, nvrtc, arch, output, indices) : std::string();
  std::optional<Compiled> code;
  if (store)
    if (const auto entry = store->get(key)) code = unpack(*entry);
  result.from_store = code.has_value();
  if (!code) {
    code = nvrtc.compile(bare_text(kernel, arch, indices), result.symbol + ".cu", arch, output);
    if (store) store->put(key, pack(*code));
  }
  if (output == Output::cubin) result.resources = parse_resources(code->log, result.symbol);
  result.code = std::move(code->code);
  return result;
}

/// The order in which kernels are compiled: those of the longest text first, so that threads finish together.
std::vector<std::size_t> longest_first(std::span<const kernel::Kernel> kernels) {
  const auto length = [&](std::size_t i) {
    std::size_t values = kernels[i].values.size();
    for (const kernel::KernelPhase& phase : kernel::phases_of(kernels[i]))
      values += kernels[i].phase_kernels[static_cast<std::size_t>(phase.kernel)]->values.size();
    return values;
  };
  std::vector<std::size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), length);
  return order;
}

}  // namespace

std::string code_key(const kernel::Kernel& kernel, const Nvrtc& nvrtc, const Arch& arch, Output output,
                     Indices indices) {
  return sha256_hex(fmt::format("lathe cuda\nnvrtc {}\noptions {}\n{}\n{}", nvrtc.version(),
                                fmt::join(Nvrtc::options(arch, output), " "), prelude(),
                                bare_text(kernel, arch, indices)));
}

std::vector<CompiledKernel> compile_kernels(const Nvrtc& nvrtc, std::span<const kernel::Kernel> kernels,
                                            const Arch& arch, Output output, ObjectStore* store, int threads,
                                            Indices indices) {
  std::vector<CompiledKernel> results(kernels.size());
  const std::vector<std::size_t> order = longest_first(kernels);
  share_jobs(kernels.size(), threads, [&](const NextJob& next) {
    while (const auto job = next()) {
      const std::size_t i = order[*job];
      results[i] = compile_one(nvrtc, kernels[i], arch, output, store, indices);
    }
  });
  return results;
}

}  // namespace lathe::cuda
