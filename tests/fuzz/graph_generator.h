#pragma once

#include <vector>

#include "ir/tensor/interpret/interpreter.h"

/// Random graphs and models, the properties that they must have, and the reduction of a failing graph.
namespace lathe::fuzz {

/// Which values of a graph the oracle `exposed` makes the only outputs, in addition to its own: none, several random
/// sets, small sets that cover every value once, or every value by itself.
struct Exposure {
  enum class Kind { given, some, every, alone };
  Kind kind = Kind::some;
  unsigned parts = 1;  ///< only one in `parts` of the sets, chosen by the seed
};

/// A graph to test, and the sizes of its symbolic dims for each run.
struct Case {
  unsigned seed = 0;  ///< also that of the arguments' values
  ir::Graph graph;
  std::vector<DimBindings> sizes;
  bool tame = false;    ///< the arguments have the magnitudes of a model's
  bool scaled = false;  ///< each float argument is multiplied by its own power of ten
  Exposure exposure = {};
};

/// The smallest and the largest power of ten.
constexpr int least_power = -44, largest_power = 37;

/// The kind of random graphs to make.
struct GraphKind {
  int ops = 14;
  bool wide = false, scaled = false;
};

/// Integer arguments of random graphs are between 0 and this.
constexpr std::int64_t top_integer = 2;

/// Returns values for the arguments of a case: floats in [-2, 2] and integers from 0 to top_integer, or tame ones.
Tensors arguments_of(const Case& from, const DimBindings& dims);

/// Returns a valid graph of about `ops` ops, deterministic by seed: every family of ops, composites, variants of
/// attention, contractions, gathers, concats, loops, reductions over any dims, broadcasting, strided views, complex
/// values, all dtypes (usually one float dtype with others mixed in), static and symbolic dims. Most graphs have
/// gradients of the output "loss", some also second derivatives; some arguments are states, updated by random values.
/// Discontinuous ops only read exactly computed values, except in pure f64 graphs, where rounding errors are
/// negligible.
///
/// `wide` graphs have dims of up to a few hundred, so that matmuls and attention use tiles, split-K and blocks;
/// mostly in f32 and bf16. `scaled` ones are mostly f32 and have no narrower floats, whose matmuls may flush numbers
/// below 2^-126 to zero.
Case random_case(unsigned seed, const GraphKind& kind = {});

/// Returns a small model of frontend/models, deterministic by seed: with the gradients of its loss, or as a whole
/// training step. Successive seeds cycle through all models, then through dtypes (f32, f64, bf16 in mixed precision
/// and throughout) with symbolic or static dims; sizes, layers, dropout, optimizer and clipping vary.
Case model_case(unsigned seed);
/// This many seeds, from 0, cover every model in every dtype with symbolic and static dims, as a training step.
constexpr unsigned model_cases = 7 * 6;

}  // namespace lathe::fuzz
