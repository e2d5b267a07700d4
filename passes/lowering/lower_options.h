#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/machine/network_info.h"
#include "ir/machine/row_chunks.h"
#include "ir/support/dim.h"

namespace lathe {

/// What becomes of attentions.
enum class AttentionFusion : std::uint8_t {
  automatic,  ///< those that are found run as one kernel each where that is faster:
              ///< passes/fusion/attention/fuse_attention.h
  off,        ///< each product and softmax runs by itself, through memory
  required,   ///< whatever it costs; a softmax that is not fused is an error
};

/// How much memory a program may take, arena, arguments, states, results and constants together, judged by the real
/// memory plan with these dims: every unknown dim of the graph needs a value. At other sizes the program runs too;
/// how much it takes there is not promised.
struct MemoryBudget {
  std::int64_t bytes = 0;
  DimBindings dims = {};
  int threads = 1;  ///< that run it, each with its scratch; compile() knows
};

/// Which tuning candidate each product takes: see TuningCandidates.
struct TuningChoices {
  std::map<std::string, int> chosen = {};  ///< by TuningCandidates::problem; other products take the default
  DimBindings dims = {};                   ///< a size of every unknown dim: the runs that are to be fast
  bool all = false;  ///< to measure: every product once with each candidate, one after the other
};

struct LowerOptions {
  AttentionFusion attention = AttentionFusion::automatic;
  std::optional<RowChunks> chunks = {};     ///< of the last pass before; none: what suits the machine
  std::optional<MemoryBudget> memory = {};  ///< values are computed again to fit: passes/remat/rematerialize.h
  /// Of several processes: all_reduces of known sizes go together up to so many bytes, begun when the last of their
  /// values is there. 0: each goes alone.
  std::int64_t bucket_bytes = NetworkInfo{}.bucket_bytes;
  std::optional<TuningChoices> tuning =
      {};  ///< launches of products then carry their candidates: runtime/tune/tune.h
};

}  // namespace lathe
