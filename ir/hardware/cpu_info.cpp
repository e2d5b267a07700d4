#include "ir/hardware/cpu_info.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "ir/support/syntax/commas.h"

namespace lathe {

namespace {

/// VDPBF16PS has twice the rate of an f32 fma on a Zen, and half of it on an Intel CPU. Xeons with AMX have an L3
/// behind a mesh; no feature flag distinguishes it from older ones.
constexpr CpuInfo cpus[] = {
    {.name = "x86-64-v2",
     .features = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3",
     .vectors = {128, 16},
     .lane_flops = 2},
    {.name = "x86-64-v3",
     .basis = "x86-64-v2",
     .features = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave",
     .vectors = {256, 16}},
    {.name = "x86-64-v4",
     .basis = "x86-64-v3",
     .features = "+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl",
     .vectors = {512, 32}},
    {.name = "sapphirerapids",
     .basis = "x86-64-v4",
     .features = "+avx512bf16,+amx-tile,+amx-bf16",
     .vectors = {512, 32},
     .tiles = true,
     .l2 = {2 << 20, 2},
     .slow_last_level = true},
    {.name = "znver4",
     .basis = "x86-64-v4",
     .features = "+avx512bf16",
     .one_model = true,
     .vectors = {512, 32},
     .dot_pairs = true},
    {.name = "znver5",
     .basis = "x86-64-v4",
     .features = "+avx512bf16",
     .one_model = true,
     .vectors = {512, 32},
     .dot_pairs = true},
};

bool has(std::string_view features, std::string_view wanted) {
  const std::vector<std::string_view> all = syntax::at_commas(features);
  return std::ranges::find(all, wanted) != all.end();
}

bool has_all(std::string_view features, std::string_view wanted) {
  return std::ranges::all_of(syntax::at_commas(wanted),
                             [&](std::string_view feature) { return has(features, feature); });
}

std::string kibibytes(std::int64_t bytes) { return fmt::format("{} KiB", bytes >> 10); }

std::string cache_text(const char* name, const CpuCache& cache) {
  return fmt::format("{:<12} {}{}\n", name, kibibytes(cache.bytes),
                     cache.shared_by > 1 ? fmt::format(", shared by {} threads", cache.shared_by) : "");
}

}  // namespace

std::span<const CpuInfo> cpu_infos() { return cpus; }

const CpuInfo& unnamed_cpu() {
  static const CpuInfo entry;
  return entry;
}

const CpuInfo* find_cpu_info(std::string_view name) {
  const auto* const found = std::ranges::find(cpus, name, &CpuInfo::name);
  return found == std::end(cpus) ? nullptr : found;
}

std::string cpu_features(const CpuInfo& info) {
  if (info.basis.empty()) return std::string(info.features);
  const CpuInfo* const basis = find_cpu_info(info.basis);
  LATHE_ASSERT(basis);
  return cpu_features(*basis) + "," + std::string(info.features);
}

CpuInfo cpu_info_for(std::string_view name, std::string_view features, int vector_bits) {
  const CpuInfo *by_features = nullptr, *by_name = nullptr;
  for (const CpuInfo& info : cpus) {
    if (info.vectors.bits != vector_bits) continue;
    if (info.name == name) by_name = &info;
    // The smallest entry of that width serves any CPU set to that width.
    if (!by_features || (!info.one_model && has_all(features, cpu_features(info)))) by_features = &info;
  }
  if (!by_features) throw InternalError(fmt::format("no CPU is known with vectors of {} bits", vector_bits));
  CpuInfo info = by_name ? *std::max(by_name, by_features) : *by_features;
  info.tiles = info.tiles && has(features, "+amx-tile") && has(features, "+amx-bf16");
  info.dot_pairs = info.dot_pairs && has(features, "+avx512bf16");
  return info;
}

std::string to_string(const CpuInfo& info) {
  std::string text =
      fmt::format("{:<12} {} of {} bits{}{}\n", "registers", info.vectors.count, info.vectors.bits,
                  info.dot_pairs ? ", dot products of pairs of bf16" : "", info.tiles ? ", AMX tiles of bf16" : "");
  text += cache_text("L1", info.l1) + cache_text("L2", info.l2) + cache_text("last level", info.last_level);
  text += fmt::format("{:<12} {} in flight to a core{}\n", "memory", kibibytes(info.bytes_in_flight),
                      info.slow_last_level ? ", slow last-level cache" : "");
  return text + fmt::format("{:<12} {}\n", "cores", info.cores);
}

}  // namespace lathe
