#pragma once

#include <string>

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// The short form of a graph, for reading: as print(), without locations, and of layers that repeat only the first.
/// Not meant to be parsed.
///   %14 = add %3, %13                          : f32[B, n_seq, d_model=512]
///   // decoder.1 .. decoder.5: as decoder.0, 11 values each (%15 .. %69)
std::string print_short(const Graph& graph);

struct ExplainOptions {
  bool collapse_layers = true;  ///< of layers that repeat tell only the first
};

/// The story of the shapes: what comes in, then for every value its op, its shape with named dims, the reason for it
/// and the user's line; then what goes out and what is checked at run time. All of it comes from the IR.
///   %2 q     view       [nbatches, n_seq, h=8, d_k=64]           mha.cpp:14
///            d_model=512 splits into h=8 x d_k=64; nothing is copied
std::string explain(const Graph& graph, const ExplainOptions& options = {});

/// One line on why a value has its shape: "n_seq and h=8 change places; nothing is copied". Arguments: what they are.
std::string shape_reason(const Graph& graph, ValueId id);

}  // namespace lathe::ir
