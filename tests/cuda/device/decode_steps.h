#pragma once

#include <cstdint>

#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe::test {

/// Small decoding steps: one token for each of `batch` sequences, with caches of keys and values. Inputs: "tokens"
/// and "positions" i64 [batch, 1]. Dims: capacity, and length, the number of rows of the caches that are read.
struct DecodeStep {
  std::int64_t batch = 1;
  DType dtype = f32;
  int layers = 2;
};
/// With GPT-2's layers: learned positions, layer norms, one projection for q, k and v, GELU.
ir::Graph gpt_step(const DecodeStep& step);
/// With Llama's layers: rotary embedding, RMS norms, grouped heads, SwiGLU.
ir::Graph llama_step(const DecodeStep& step);

/// The values of all states, and inputs for positions from `position` on.
Tensors decode_states(const ir::Graph& graph, std::int64_t capacity);
Tensors decode_inputs(const DecodeStep& step, std::int64_t position);

}  // namespace lathe::test
