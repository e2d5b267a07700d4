#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "frontend/graph.h"

namespace lathe::nn {

/// The keys and values of previous tokens, for a call that appends T tokens. They are two states of the graph per
/// attention: "<attention>.key_cache" and "<attention>.value_cache", [B, kv, capacity, d], where row p belongs to
/// position p. An attention with a window keeps R = Dim("window_rows") rows, with position p in row p % R. R is at
/// least window + T - 1, or the length that the sequence can reach. Runs write the new rows in place and read the
/// first `length` rows.
///
/// Two graphs over one parameter store make a generator: one for the prompt, in chunks of any T, and one for T = 1.
struct KeyValueCache {
  Dim capacity{"capacity"};  ///< rows of the states; bound by the states' values
  /// Number of positions that are read, including the new ones; at most capacity. No argument has this dim, so pass
  /// it to Executable::run.
  Dim length{"length"};
  /// i64 [B, T], for sequences of different lengths. None: length - T, .., length - 1 in all of them.
  std::optional<Tensor> positions = {};
  /// Dtype of the cached rows: cache_dtype().
  std::optional<DType> dtype = {};
  /// i64 [B], the row of the batch that each sequence continues, such as for beams of a search. None: its own row.
  std::optional<Tensor> parents = {};

  /// The widest window of all calls, valid once the graph is built; 0: no windows.
  std::shared_ptr<std::int64_t> widest_window = std::make_shared<std::int64_t>(0);

  /// Positions of the new tokens: [T] or [B, T].
  Tensor positions_of(const Graph& g, const Dim& T) const;
  /// Writes new rows x [B, kv, T, d] to the state `name` of the current scope. Returns the rows to read in the dtype
  /// of x: [B, kv, length, d], or with a window [B, kv, R, d]. Throws UserError [cache_dtype].
  Tensor append(std::string_view name, const Tensor& x, std::optional<std::int64_t> window) const;
  /// Returns bool [T, length] or [B, 1, T, length] (R with a window): the rows that each new token attends to,
  /// including itself.
  Tensor visible(const Graph& g, const Dim& T, std::optional<std::int64_t> window) const;
};

/// Returns the dtype to cache keys or values x in: `dtype` if given (a float dtype; bf16 needs half the memory of
/// f32), otherwise that of x. Throws UserError [cache_dtype].
DType cache_dtype(const Tensor& x, std::optional<DType> dtype, Where at = Where::current());

/// The keys and values that a decoder's cross-attentions read, which are the same in all steps: states of the graph,
/// "<attention>.source_keys" and "<attention>.source_values", [sources, kv, length, d]. One graph writes them with
/// SelfAttention::keep_source(); the step graphs read them with SelfAttention::across().
struct SourceCache {
  Dim sources{"sources"};  ///< the number of sequences, or 1 if all of them share one source
  Dim length{"source_length"};
  std::optional<DType> dtype = {};  ///< dtype of the states: cache_dtype()
};

/// Whether a state of a graph holds keys or values of a KeyValueCache or SourceCache, by its name.
bool is_cache_state(std::string_view name);

}  // namespace lathe::nn
