#pragma once

#include <vector>

#include "ir/tensor/graph.h"

/// Random graphs, what must hold of them, and how a graph for which it does not is made small.
namespace lathe::fuzz {

/// A graph to put to the test, and the sizes of its unknown dims to run it with, one after the other.
struct Case {
  unsigned seed = 0;  ///< of the arguments' values too
  ir::Graph graph;
  std::vector<DimBindings> sizes;
  bool scaled =
      false;  ///< float arguments are multiplied by powers of ten, one each, and results count by their size
};

/// The least and the largest power of ten.
constexpr int least_power = -44, largest_power = 37;

/// Which kind of graphs to make.
struct Kind {
  int ops = 14;
  bool wide = false, scaled = false;
};

/// Random graphs take integers from 0 to this for arguments.
constexpr std::int64_t top_integer = 2;

/// A valid graph of about `ops` ops and the same for the same seed: every family of ops, composites, attention in
/// many spellings, contractions, gathers, joins, reductions over any dims, broadcasting, strided views, complex
/// values, all dtypes (most of the time one float dtype with others mixed in), known and unknown dims. Most graphs
/// come with gradients of the output "loss", some with gradients of those; some arguments are states, updated by
/// random values. Discontinuous ops read what is computed exactly, but in graphs of f64 alone: rounding there is too
/// small to matter.
/// `wide` graphs have dims of up to a few hundred, so that products and attention run in tiles, slices and blocks; of
/// f32 and bf16 mostly. `scaled` ones are of f32 mostly, and have no narrower floats, whose products may take numbers
/// below 2^-126 as zeros.
Case random_case(unsigned seed, const Kind& kind = {});

}  // namespace lathe::fuzz
