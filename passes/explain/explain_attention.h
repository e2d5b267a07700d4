#pragma once

#include <string>

#include "ir/hardware/hardware_info.h"
#include "passes/lowering/lowered.h"

namespace lathe {

/// Explains for every softmax of a graph whether it is fused with the adjacent matmuls. If it is, lists the values
/// that its kernels store and the multiplier they use. Otherwise names the first condition that fails, with its node
/// and source line. Requires a graph that was lowered with attention fusion; makes no decisions itself.
///
///   softmax at mha.cpp:22: fused
///     one kernel over [nbatches, h=8, n_seq, n_seq]: 1 matmul for scores, 1 output matmul; rows along n_seq
///       stored per row: %14 max, %17 sum
///       by k0_attention: tile_mma, f32 as split bf16
///   softmax at mha.cpp:30: not fused
///     it reads the weights through a reshape or a slice, or with both operands (%31 contract at mha.cpp:31)
///
/// On a GPU, also prints the shared memory of each kernel, and which matmul prevents the use of tensor cores or of
/// warpgroups:
///
///       by k0_attention_div_contract_mha_cpp_23: 17408 bytes of shared memory per block
///       not by tensor cores, which multiply only bf16 or f16: %12 contract multiplies f32 and f32 (mha.cpp:21)
std::string explain_attention(const Lowered& lowered, const HardwareInfo& machine);

/// Returns explain_attention() followed by explain_products().
std::string explain_fusion(const Lowered& lowered, const HardwareInfo& machine);

}  // namespace lathe
