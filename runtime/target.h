#pragma once

#include <optional>
#include <string_view>

#include "codegen/cuda/arch.h"
#include "codegen/llvm/target_cpu.h"
#include "passes/lowering/vector_target.h"

namespace lathe {

/// What schedules know of a CPU. Xeons with AMX have an L3 behind a mesh; no feature tells it of older ones.
/// VDPBF16PS has twice the rate of an f32 fma on a Zen, half of it on an Intel CPU.
inline VectorTarget vector_target(const codegen::TargetCpu& cpu) {
  const bool pairs = cpu.has("avx512bf16") && cpu.cpu.starts_with("znver");
  return {.bits = cpu.vector_bits,
          .dot_pairs = cpu.vector_bits == 512 && pairs,
          .far_l3 = cpu.has("amx-tile"),
          .tiles = cpu.vector_bits == 512 && cpu.has_tiles()};
}

/// What a graph is compiled for.
struct Target {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  codegen::TargetCpu cpu = {};                 ///< of kind cpu
  std::optional<lathe::cuda::Arch> arch = {};  ///< of kind cuda; none: that of the device

  /// The CPU that this process runs on.
  static Target host() { return {.cpu = codegen::TargetCpu::host()}; }
  /// An NVIDIA GPU: "sm_90a" and the like, or the architecture of the device that is there. UserError [unknown_arch].
  static Target cuda(std::string_view arch = {});
  /// "host", "x86-64-v2", "x86-64-v3", "x86-64-v4", "cuda" or "cuda:" and an architecture, such as "cuda:sm_90a".
  /// UserError [unknown_target], [unknown_arch] otherwise; [unknown_cpu] for what a comma adds.
  static Target named(std::string_view name);
};

}  // namespace lathe
