#include "codegen/llvm/target_cpu.h"

#include <map>
#include <string>

#include <fmt/core.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/TargetParser/Host.h>

#include "ir/support/error.h"

namespace lathe::codegen {

namespace {

constexpr std::string_view v2_features = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3";
constexpr std::string_view v3_features = ",+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave";
constexpr std::string_view v4_features = ",+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl";

}  // namespace

bool TargetCpu::has(std::string_view feature) const {
  const std::string wanted = fmt::format(",+{},", feature);
  return fmt::format(",{},", features).find(wanted) != std::string::npos;
}

TargetCpu TargetCpu::host() {
  std::map<std::string, bool> sorted;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) sorted[feature.first().str()] = feature.second;
  TargetCpu target{.cpu = llvm::sys::getHostCPUName().str(), .features = {}};
  for (const auto& [name, present] : sorted)
    target.features += fmt::format("{}{}{}", target.features.empty() ? "" : ",", present ? '+' : '-', name);
  const bool avx512 =
      target.has("avx512f") && target.has("avx512bw") && target.has("avx512dq") && target.has("avx512vl");
  target.vector_bits = avx512 ? 512 : target.has("avx2") ? 256 : 128;
  return target;
}

TargetCpu TargetCpu::named(std::string_view name) {
  const std::string cpu(name), v2(v2_features), v3 = v2 + std::string(v3_features);
  if (name == "x86-64-v2") return {cpu, v2, 128};
  if (name == "x86-64-v3") return {cpu, v3, 256};
  if (name == "x86-64-v4") return {cpu, v3 + std::string(v4_features), 512};
  throw UserError(fmt::format("there is no target CPU named \"{}\"", name), "unknown_cpu",
                  "give x86-64-v2, x86-64-v3 or x86-64-v4, or leave it out for this machine's CPU");
}

bool TargetCpu::runs_here() const {
  const TargetCpu here = host();
  if (*this == here) return true;
  std::string_view rest = features;
  while (!rest.empty()) {
    const std::string_view feature = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), feature.size() + 1));
    if (feature.starts_with('+') && !here.has(feature.substr(1))) return false;
  }
  return true;
}

}  // namespace lathe::codegen
