#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "frontend/graph.h"
#include "ir/tensor/graph.h"

/// Equivalent ways to write attention: a matmul of queries and keys, an element-wise part, a softmax, a matmul with
/// the values.
namespace lathe::test {

enum class Layout {
  heads,              ///< q [N, h, S, d]
  split,              ///< q [N, S, h*d] viewed and transposed; the result transposed, contiguous, viewed
  split_reshape,      ///< the same, merged by reshape
  keys_permuted,      ///< k [N, T, h*d] permuted to [N, h, d, T]
  keys_transposed,    ///< k is stored as [N, h, d, T]
  keys_first,         ///< scores [N, h, T, S], softmax over dim -2
  length_first,       ///< einsum over q [N, S, h, d], scores [N, h, S, T]
  rows_outside,       ///< einsum, scores [N, S, h, T]
  heads_last,         ///< einsum, scores [S, T, N, h], softmax over dim 1
  batched,            ///< q reshaped to [N*h, S, d]
  batched_viewed,     ///< the same, scores viewed as [N, h, S, T] in between
  batch_only,         ///< q [N, S, d], one head
  flat,               ///< q [S, d]
  per_head,           ///< q by einsum from x and weights [h, m, d]
  head_by_head,       ///< each head separately, then concat
  grouped_expand,     ///< fewer key heads, by expand + reshape
  grouped_repeat,     ///< by repeat_interleave
  grouped_broadcast,  ///< q viewed as [N, G, r, S, d]
  grouped_einsum,     ///< the same by einsum
  one_key_head,       ///< k [N, 1, T, d], broadcast by matmul
};
enum class Scale { none, times, divided, on_queries, on_keys, on_both, by_parameter, on_values, negated_twice };
enum class Mask {
  none,
  causal_fill,
  causal_fill_inf,
  causal_where,
  causal_where_swapped,
  causal_add,
  causal_add_inf,
  causal_tril,
  causal_triu_add,
  causal_iota,
  causal_literal,
  padding_bool,
  padding_i64,
  padding_f32,
  padding_rows,
  both_fill,
  both_and,
  both_add,
  window,
  alibi,
  soft_cap,
  soft_cap_causal,
  bias,
  bias_shared,
  bias_then_mask,
  gate,
  tiny_fill,
};
enum class Normalisation {
  softmax,
  softmax_written_out,  ///< exp(s - max) / sum
  without_max,          ///< exp(s) / sum
  by_reciprocal,
  exp_of_log_softmax,
  by_logsumexp,
  after_the_product,  ///< (exp(s - max) v) / sum
};
enum class Extra { none, dropout, weights_returned, scores_returned, values_wider, cross };
enum class Types { f32, f64, bf16, f16, f32_softmax };

struct PatternVariant {
  Layout layout = Layout::heads;
  Scale scale = Scale::times;
  Mask mask = Mask::none;
  Normalisation normalisation = Normalisation::softmax;
  Extra extra = Extra::none;
  Types types = Types::f32;
  std::int64_t depth = 4;  ///< of a head

  auto operator<=>(const PatternVariant&) const = default;
  std::string name() const;
};

/// Returns every layout, scale, mask, normalization, extra and dtype with defaults for the others; every layout with
/// every kind of mask that reads different values, and with a learned scale; merged batches with every mask; and
/// seeded random combinations. All are different.
std::vector<PatternVariant> variants();

/// Returns the graph: inputs, "y" and the gradient of a weighted sum of y for each float input. Its symbolic dims are
/// N, S and, for cross-attention, T. `dtype` replaces that of the variant.
ir::Graph build(const PatternVariant& variant, std::optional<DType> dtype = {});
/// Whether S must be `literal_size`, because the mask is a literal.
inline constexpr int literal_size = 17;
bool has_literal(const PatternVariant& variant);

/// Scores under construction: how a layout computes them, broadcasts a mask [N or 1, h or 1, S, T] to them, and uses
/// the weights.
struct LaidOut {
  Tensor scores;
  int columns = -1;  ///< the dim of the softmax
  std::function<Tensor(const Tensor&)> position;
  std::function<Tensor(const Tensor&)> apply;
};
struct Sizes {
  Dim N{"N"}, S{"S"}, T{"S"}, h{"h", 2}, groups{"g", 2}, d{"d", 4}, e{"d", 4};
};
/// Declares an input, or finds the one with this name. Without a dtype: floats of the variant's dtype, whose gradient
/// is an output.
using MakeInput = std::function<Tensor(std::string_view name, std::optional<DType> dtype, const Shape& shape)>;
/// Returns one attention, or several for head_by_head.
std::vector<LaidOut> lay_out(const PatternVariant& variant, const Sizes& sizes, const MakeInput& input);
Sizes sizes_of(const PatternVariant& variant);

/// Applies masks, biases and caps to the scores of attention number `part`.
Tensor mask_scores(const PatternVariant& variant, const Sizes& sizes, Graph& g, const MakeInput& input,
                   const LaidOut& laid_out, Tensor scores);

}  // namespace lathe::test
