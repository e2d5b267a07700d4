#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/hardware/network_info.h"
#include "ir/options/row_chunks.h"
#include "ir/support/dim.h"

namespace lathe {

/// How attention is lowered.
enum class AttentionFusion : std::uint8_t {
  automatic,  ///< one fused kernel per attention where that is faster: passes/fusion/attention/fuse_attention.h
  off,        ///< each matmul and softmax runs as a separate kernel, through memory
  required,   ///< always fused; a softmax that cannot be fused is an error
};

/// Limit for the memory of a program: arena, arguments, states, results and constants together. The actual memory
/// plan is checked with these dims, which must bind every unknown dim of the graph. The program also runs at other
/// sizes, without a memory guarantee.
struct MemoryBudget {
  std::int64_t bytes = 0;
  DimBindings dims = {};
  int threads = 1;  ///< that run the program, each with its own scratch; set by compile()
};

/// The tuning candidate that each matmul uses; see TuningCandidates.
struct TuningChoices {
  std::map<std::string, int> chosen = {};  ///< by TuningCandidates::problem; other matmuls use the default
  DimBindings dims = {};                   ///< sizes to tune for; binds every unknown dim
  bool all = false;  ///< for measurements: run each matmul once with every candidate, in sequence
};

struct LowerOptions {
  AttentionFusion attention = AttentionFusion::automatic;
  std::optional<RowChunks> chunks = {};     ///< of "chunk-rows", the last pass; default: Machine::chunks
  std::optional<MemoryBudget> memory = {};  ///< recomputes values to fit: passes/compile/fit_budget.h
  /// Maximum bytes of packed copies of parameters that an executable for a CPU keeps between runs; 0: none. Matmuls
  /// by a parameter that the graph does not update then read a copy that is packed again only after the parameter has
  /// changed. The copies of the first parameters that fit are kept. With a memory budget (`memory`), none are.
  std::int64_t packed_bytes = std::int64_t{1} << 30;
  std::int64_t least_packed = 2048;  ///< elements of a parameter; smaller ones stay in L1, and packing takes no time
  /// With several processes: all_reduces of known sizes are grouped into buckets of up to this many bytes. A bucket
  /// starts when its last value is ready. 0: no grouping.
  std::int64_t bucket_bytes = NetworkInfo{}.bucket_bytes;
  bool join_launches = true;                 ///< on GPUs, small launches in sequence become phases of one kernel
  std::optional<TuningChoices> tuning = {};  ///< adds tuning candidates to matmul launches: runtime/tune/tune.h
};

}  // namespace lathe
