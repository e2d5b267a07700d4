#pragma once

#include <string>

#include "ir/options/row_chunks.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// Explains, for the matmuls of a graph of primitives that chunk_rows considers, whether they are split into row
/// chunks, or which condition fails first, at which node and source line.
///
///   product at gpt.cpp:86: f32[B=4, T=1024, vocab=50257] in 4 chunks of 1024 rows, along B=4
///     joined: %1147 sum f32[B=4, T=1024, 1], %1171 contract f32[B=4, T=1024, d_model=768]
///     added up: %1172 contract f32[vocab=50257, d_model=768]
///   product at gpt.cpp:83: f32[B=4, T=1024, d_ff=3072] stays whole
///     its columns meet another table than the product's own (%96 contract at gpt.cpp:84)
std::string explain_row_chunks(const ir::Graph& graph, const RowChunks& options);

}  // namespace lathe
