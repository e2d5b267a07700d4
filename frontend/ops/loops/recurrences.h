#pragma once

#include <cstdint>
#include <optional>

#include "frontend/tensor.h"

/// Recurrences with a matrix as their state, computed in chunks: products of matrices within all chunks at once, and
/// a loop over the chunks for the state. A length that is a number need not be a multiple of the chunk; an unknown
/// one must be, such as 64 * n [chunk_length]. For generation, pass the state that the call before returned: one
/// step, or any number of steps, gives the same results as the whole sequence.
///
/// bf16 and f16 are computed in f32. Outputs have the dtype of q or x; states are f32, or f64 for f64.
namespace lathe {

/// The outputs of all steps, and the state after the last one.
struct RecurrenceResults {
  Tensor output;
  Tensor state;
};

struct DeltaRuleOptions {
  std::int64_t chunk = 64;           ///< steps of a chunk
  Tensor initial = {};               ///< the state before the first step [B, H, d_k, d_v]; empty: zeros
  std::optional<double> scale = {};  ///< multiplies q; default: 1 / sqrt(d_k), which must then be known
};
/// The gated delta rule (Yang et al. 2024, "Gated Delta Networks", arXiv 2412.06464): q, k [B, T, H, d_k],
/// v [B, T, H, d_v], log_decay and beta [B, T, H] -> output [B, T, H, d_v], state S [B, H, d_k, d_v]:
///   S' = exp(log_decay[t]) S[t-1]
///   S[t] = S' + k[t] (beta[t] (v[t] - S'^T k[t]))^T
///   output[t] = S[t]^T q[t] scale
/// log_decay is at most 0. With 0 it is the delta rule of DeltaNet (Yang et al. 2024, arXiv 2406.06484), whose chunks
/// are solved as one triangular system each. Keys are usually normalized, and beta from 0 to 1.
/// [delta_rule_shape] [dtype_match] [recurrence_chunk] [chunk_length]
RecurrenceResults gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& log_decay,
                                   const Tensor& beta, const DeltaRuleOptions& options = {},
                                   Where at = Where::current());

struct StateSpaceOptions {
  std::int64_t chunk = 64;  ///< steps of a chunk
  Tensor initial = {};      ///< the state before the first step [B, H, n, p]; empty: zeros
  Tensor skip = {};         ///< D [H]: adds skip * x to the output
};
/// The state-space layer of Mamba-2 by state-space duality, SSD (Dao and Gu 2024, arXiv 2405.21060): x [B, T, H, p],
/// dt [B, T, H], a [H], b and c [B, T, G, n] -> output [B, T, H, p], state h [B, H, n, p]:
///   h[t] = exp(dt[t] a) h[t-1] + b[t] (dt[t] x[t])^T
///   output[t] = h[t]^T c[t] + skip x[t]
/// The H heads share the G groups of b and c; a is below 0.
/// [state_space_shape] [dtype_match] [recurrence_chunk] [chunk_length]
RecurrenceResults state_space_dual(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                                   const Tensor& c, const StateSpaceOptions& options = {},
                                   Where at = Where::current());

}  // namespace lathe
