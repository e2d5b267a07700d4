#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lathe::codegen {

/// The CPU that code is made for. `features` is LLVM's "+avx2,+fma,..." and part of every cache key.
struct TargetCpu {
  std::string cpu;
  std::string features;
  int vector_bits = 128;  ///< the widest vector registers: 512, 256 or 128

  /// The CPU this process runs on.
  static TargetCpu host();
  /// "host", "x86-64-v2" (SSE4.2), "x86-64-v3" (AVX2, FMA) or "x86-64-v4" (AVX-512), and what it has more or less:
  /// "host,-amx-bf16", "x86-64-v4,+avx512bf16,+amx-tile,+amx-bf16"; UserError [unknown_cpu] otherwise.
  static TargetCpu named(std::string_view name);
  /// The names that `named` takes, before a comma.
  static std::span<const std::string_view> names();
  /// Whether code for this target runs on the present CPU.
  bool runs_here() const;
  /// Whether `features` holds "+feature".
  bool has(std::string_view feature) const;
  /// Whether products of bf16 by tile registers run: AMX, which the system may refuse this process.
  bool has_tiles() const { return has("amx-tile") && has("amx-bf16"); }

  bool operator==(const TargetCpu&) const = default;
};

}  // namespace lathe::codegen
