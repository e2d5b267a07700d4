#pragma once

#include "frontend/graph.h"

/// Position encodings. Tables are computed in the graph in f64, rounded once, and may have a symbolic length.
namespace lathe::nn {

/// Returns [n, d]: sin(pos * w_i) at 2i and cos(pos * w_i) at 2i+1, w_i = 10000^(-2i/d) (Vaswani et al. 2017, 3.5). d
/// must be even and known; throws UserError [positions_even].
Tensor sinusoidal_positions(const Graph& g, const Dim& n, const Dim& d, DType dtype = f32,
                            Where at = Where::current());

/// Returns [d/2] in f64: theta^(-2i/d) (Su et al. 2021, 3.2.2).
Tensor rotary_frequencies(const Graph& g, const Dim& d, double theta = 10000, Where at = Where::current());

/// The two tables of the half-split layout, [n, d] each: cos and sin of pos * frequency, repeated for both halves.
struct RotaryTables {
  Tensor cos, sin;
};
/// Returns the tables of positions 0 .. n-1 and rotary_frequencies().
RotaryTables rotary_tables(const Graph& g, const Dim& n, const Dim& d, DType dtype = f32, double theta = 10000,
                           Where at = Where::current());

/// Returns e^(i * position * frequency) for positions i64 [B, S]: complex [B, 1, S, d/2], of the complex type of
/// `dtype`.
Tensor rotary_phases(const Graph& g, const Tensor& positions, const Dim& d, DType dtype = f32, double theta = 10000,
                     Where at = Where::current());
/// Rotates the pairs (x_2i, x_2i+1) as complex numbers: x [B, h, S, d], phases [B, 1, S, d/2] -> [B, h, S, d].
Tensor rotate_pairs(const Tensor& x, const Tensor& phases, Where at = Where::current());

}  // namespace lathe::nn
