#pragma once

#include <string>

#include "ir/tensor/graph.h"

namespace lathe {

/// As explain_attention(), for what lower_gpu() makes of the graph (with `warpgroups` lower_gpu_sm_90a()): which
/// kernels run each attention that is fused, what shared memory they take, and whether tensor cores multiply in them,
/// or which product keeps them from it, on which source line.
///
///   softmax at mha.cpp:22: fused
///     one kernel over [n, h=8, n_seq, n_seq]: ...
///       by k0_attention_div_contract_mha_cpp_23: 17408 bytes of shared memory a block
///       not by tensor cores, which take bf16 or f16 alone: %12 contract multiplies f32 and f32 (mha.cpp:21)
std::string explain_gpu_attention(const ir::Graph& graph, bool warpgroups);

}  // namespace lathe
