#include "codegen/llvm/target_cpu.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/TargetParser/Host.h>

#include "codegen/llvm/amx_permission.h"
#include "ir/hardware/cpu_info.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/support/syntax/commas.h"

namespace lathe::codegen {

namespace {

/// Features that can be added to or removed from a named CPU.
constexpr std::string_view optional_features[] = {"avx512bf16", "amx-tile", "amx-bf16"};

TargetCpu base_of(std::string_view name) {
  if (name == "host") return TargetCpu::host();
  if (const CpuInfo* const info = find_cpu_info(name))
    return {std::string(name), cpu_features(*info), info->vectors.bits};
  throw UserError(fmt::format("there is no target CPU named \"{}\"", name), "unknown_cpu",
                  fmt::format("give one of {}", list_of(TargetCpu::names())));
}

/// Returns `features` with one of them, such as "+amx-bf16", set as given.
std::string with_feature(const std::string& features, std::string_view feature) {
  std::string result;
  for (const std::string_view one : syntax::at_commas(features))
    if (one.substr(1) != feature.substr(1)) result += fmt::format("{},", one);
  return result + std::string(feature);
}

}  // namespace

bool TargetCpu::has(std::string_view feature) const {
  const std::string wanted = fmt::format(",+{},", feature);
  return fmt::format(",{},", features).find(wanted) != std::string::npos;
}

TargetCpu TargetCpu::host() {
  std::map<std::string, bool> sorted;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) sorted[feature.first().str()] = feature.second;
  for (const char* name : {"amx-tile", "amx-bf16", "amx-int8", "amx-fp16", "amx-complex"})
    if (const auto found = sorted.find(name); found != sorted.end()) found->second = found->second && amx_permitted();
  TargetCpu target{.cpu = llvm::sys::getHostCPUName().str(), .features = {}};
  for (const auto& [name, present] : sorted)
    target.features += fmt::format("{}{}{}", target.features.empty() ? "" : ",", present ? '+' : '-', name);
  const bool avx512 =
      target.has("avx512f") && target.has("avx512bw") && target.has("avx512dq") && target.has("avx512vl");
  target.vector_bits = avx512 ? 512 : target.has("avx2") ? 256 : 128;
  return target;
}

std::span<const std::string_view> TargetCpu::names() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> names{"host"};
    for (const CpuInfo& info : cpu_infos()) names.push_back(info.name);
    return names;
  }();
  return all;
}

TargetCpu TargetCpu::named(std::string_view name) {
  TargetCpu target = base_of(name.substr(0, name.find(',')));
  for (const std::string_view feature : syntax::at_commas(name) | std::views::drop(1)) {
    if (feature == "+prefer-128-bit" || feature == "+prefer-256-bit") {  // shorter vectors, the same instructions
      target.vector_bits = std::min(target.vector_bits, feature == "+prefer-128-bit" ? 128 : 256);
      continue;
    }
    const bool known = feature.starts_with('+') || feature.starts_with('-');
    if (!known || std::ranges::find(optional_features, feature.substr(1)) == std::end(optional_features))
      throw UserError(fmt::format("\"{}\" is no feature to add to a target CPU", feature), "unknown_cpu",
                      fmt::format("give {} with + or - before, +prefer-256-bit or +prefer-128-bit",
                                  fmt::join(optional_features, ", ")));
    target.features = with_feature(target.features, feature);
  }
  return target;
}

bool TargetCpu::runs_here() const {
  const TargetCpu here = host();
  if (*this == here) return true;
  // LLVM may use all features of a model, including those that Lathe does not query.
  if (!cpu.starts_with("x86-64-") && cpu != here.cpu) return false;
  return std::ranges::all_of(syntax::at_commas(features), [&](std::string_view feature) {
    return !feature.starts_with('+') || here.has(feature.substr(1));
  });
}

}  // namespace lathe::codegen
