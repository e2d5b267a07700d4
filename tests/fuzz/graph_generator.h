#pragma once

#include <vector>

#include "ir/tensor/interpret/interpreter.h"

/// Random graphs and models, what must hold of them, and how a graph for which it does not is made small.
namespace lathe::fuzz {

/// Which values of a graph the oracle `exposed` makes the only outputs, besides its own: none, a few random sets,
/// small sets in which every value stands once, or every value alone.
struct Exposure {
  enum class Kind { given, some, every, alone };
  Kind kind = Kind::some;
  unsigned parts = 1;  ///< only each parts-th of the sets; which ones, the seed tells
};

/// A graph to put to the test, and the sizes of its unknown dims to run it with, one after the other.
struct Case {
  unsigned seed = 0;  ///< of the arguments' values too
  ir::Graph graph;
  std::vector<DimBindings> sizes;
  bool tame = false;    ///< the arguments are of the sizes that a model's have
  bool scaled = false;  ///< float arguments are multiplied by powers of ten, one each
  Exposure exposure = {};
};

/// The least and the largest power of ten.
constexpr int least_power = -44, largest_power = 37;

/// Which kind of random graphs to make.
struct GraphKind {
  int ops = 14;
  bool wide = false, scaled = false;
};

/// Random graphs take integers from 0 to this for arguments.
constexpr std::int64_t top_integer = 2;

/// Values for the arguments of a case: floats in [-2, 2] and integers from 0 to top_integer, or tame ones.
Tensors arguments_of(const Case& from, const DimBindings& dims);

/// A valid graph of about `ops` ops and the same for the same seed: every family of ops, composites, attention in
/// many variants, contractions, gathers, joins, reductions over any dims, broadcasting, strided views, complex
/// values, all dtypes (most of the time one float dtype with others mixed in), known and unknown dims. Most graphs
/// come with gradients of the output "loss", some with gradients of those; some arguments are states, updated by
/// random values. Discontinuous ops read what is computed exactly, but in graphs of f64 alone: rounding there is too
/// small to matter.
/// `wide` graphs have dims of up to a few hundred, so that products and attention run in tiles, split-K and blocks;
/// of f32 and bf16 mostly. `scaled` ones are of f32 mostly, and have no narrower floats, whose products may take
/// numbers below 2^-126 as zeros.
Case random_case(unsigned seed, const GraphKind& kind = {});

/// A small model of frontend/models, the same for the same seed: with the gradients of its loss, or as a whole
/// training step. Successive seeds go through all models, then through dtypes (f32, f64, bf16 in mixed precision and
/// throughout) with dims bound late or known; sizes, layers, dropout, optimizer and clipping vary.
Case model_case(unsigned seed);
/// So many seeds, from 0, hold every model in every dtype with late and known dims, as a step.
constexpr unsigned model_cases = 7 * 6;

}  // namespace lathe::fuzz
