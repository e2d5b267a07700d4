#pragma once

#include <optional>
#include <string_view>

#include "codegen/cuda/arch.h"
#include "codegen/llvm/target_cpu.h"

namespace lathe {

/// What a graph is compiled for.
struct Target {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  codegen::TargetCpu cpu = {};          ///< of kind cpu
  std::optional<cuda::Arch> arch = {};  ///< of kind cuda; none: that of the device

  /// The CPU that this process runs on.
  static Target host() { return {.cpu = codegen::TargetCpu::host()}; }
  /// An NVIDIA GPU: "sm_90a" and the like, or the architecture of the device that is there. UserError [unknown_arch].
  static Target cuda(std::string_view arch = {});
  /// "host", "x86-64-v2", "x86-64-v3", "x86-64-v4", "cuda" or "cuda:" and an architecture, such as "cuda:sm_90a".
  /// UserError [unknown_target], [unknown_arch] otherwise; [unknown_cpu] for what a comma adds.
  static Target named(std::string_view name);
};

}  // namespace lathe
