#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "frontend/graph.h"

namespace lathe::nn {

/// The keys and values of the tokens before, for a call that adds T tokens to them. They are states of the graph, two
/// for each attention: "<attention>.key_cache" and "<attention>.value_cache", [B, kv, capacity, d], row p being that
/// of position p. An attention with a window keeps R = Dim("window_rows") rows, position p in row p % R: R is at
/// least window + T - 1, or as large as the sequence gets. Runs write the new rows in place and look at the first
/// `length`.
///
/// Two graphs over one store of parameters make a generator: one for the prompt, in chunks of any T, and one for T
/// = 1.
struct KeyValueCache {
  Dim capacity{"capacity"};  ///< rows of the states; their values say how many
  /// Positions that are looked at, the new ones among them: at most capacity. No argument tells it: it is given to
  /// Executable::run.
  Dim length{"length"};
  /// i64 [B, T], where each sequence has a length of its own; none: length - T, .., length - 1 in all of them.
  std::optional<Tensor> positions = {};
  /// What rows are kept in: cache_dtype().
  std::optional<DType> dtype = {};
  /// i64 [B], the row of the batch that each sequence goes on from, as of the beams of a search; none: its own.
  std::optional<Tensor> parents = {};

  /// The widest window that calls met, once the graph is built; 0 for none.
  std::shared_ptr<std::int64_t> widest_window = std::make_shared<std::int64_t>(0);

  /// [T], or [B, T]: those of the new tokens.
  Tensor positions_of(const Graph& g, const Dim& T) const;
  /// Writes new rows x [B, kv, T, d] into the state `name` of the current scope, and gives what is looked at:
  /// [B, kv, length, d], or with a window [B, kv, R, d], in the dtype of x. UserError [cache_dtype].
  Tensor append(std::string_view name, const Tensor& x, std::optional<std::int64_t> window) const;
  /// bool [T, length] or [B, 1, T, length] (R with a window): which rows each new token sees, itself included.
  Tensor visible(const Graph& g, const Dim& T, std::optional<std::int64_t> window) const;
};

/// What keys or values x are kept in, `dtype`, a float dtype that they are rounded to (bf16 takes half the memory of
/// f32), or without one that of x. UserError [cache_dtype].
DType cache_dtype(const Tensor& x, std::optional<DType> dtype, Where at = Where::current());

/// The keys and values of what a decoder's cross-attentions look at, which stays the same in all steps: states of the
/// graph, "<attention>.source_keys" and "<attention>.source_values", [sources, kv, length, d]. One graph writes them
/// by SelfAttention::keep_source(), those of the steps read them by SelfAttention::across().
struct SourceCache {
  Dim sources{"sources"};  ///< as many as there are sequences, or 1, which all of them share
  Dim length{"source_length"};
  std::optional<DType> dtype = {};  ///< what they are kept in: cache_dtype()
};

/// Whether a state of a graph holds keys or values of one of these caches, by its name.
bool is_cache_state(std::string_view name);

}  // namespace lathe::nn
