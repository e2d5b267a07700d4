#pragma once

#include <string>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Returns a short human-readable form of a graph: as print(), but without locations, and only the first of repeated
/// layers. Not parseable.
///   %14 = add %3, %13                          : f32[B, n_seq, d_model=512]
///   // decoder.1 .. decoder.5: as decoder.0, 11 values each (%15 .. %69)
std::string print_short(const Graph& graph);

struct ExplainOptions {
  bool collapse_layers = true;  ///< show only the first of repeated layers
};

/// Explains the shapes of a graph: its inputs; for every value its op, shape with named dims, the reason for the
/// shape, and the source line; then outputs and run-time checks. Uses only the IR.
///   %2 q     view       [nbatches, n_seq, h=8, d_k=64]           mha.cpp:14
///            splits d_model=512 into h=8 x d_k=64; no copy
std::string explain(const Graph& graph, const ExplainOptions& options = {});

/// Returns one line on why a value has its shape: "swaps n_seq and h=8; no copy". Describes
/// arguments by their kind.
std::string shape_reason(const Graph& graph, ValueId id);

}  // namespace lathe::ir
