#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lathe::codegen {

/// The target CPU. `features` is LLVM's "+avx2,+fma,..." and part of every cache key.
struct TargetCpu {
  std::string cpu;
  std::string features;
  int vector_bits = 128;  ///< the widest vector registers: 512, 256 or 128

  /// Returns the CPU that this process runs on.
  static TargetCpu host();
  /// Returns the CPU "host", "x86-64-v2" (SSE4.2), "x86-64-v3" (AVX2, FMA) or "x86-64-v4" (AVX-512), with optional
  /// feature changes: "host,-amx-bf16", "x86-64-v4,+avx512bf16,+amx-tile,+amx-bf16"; "x86-64-v4,+prefer-256-bit" has
  /// shorter vectors than it could. Throws UserError [unknown_cpu] otherwise.
  static TargetCpu named(std::string_view name);
  /// Returns the names that `named` accepts before a comma.
  static std::span<const std::string_view> names();
  /// Returns whether code for this target runs on this CPU.
  bool runs_here() const;
  /// Returns whether `features` contains "+feature".
  bool has(std::string_view feature) const;
  /// Returns whether bf16 matmuls can use tile registers: AMX, which the system may deny to this process.
  bool has_tiles() const { return has("amx-tile") && has("amx-bf16"); }

  bool operator==(const TargetCpu&) const = default;
};

}  // namespace lathe::codegen
