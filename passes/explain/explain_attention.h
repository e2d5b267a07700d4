#pragma once

#include <string>

#include "ir/machine/machine_info.h"
#include "passes/lowering/lowered.h"

namespace lathe {

/// Tells for every softmax of a graph whether it is fused with the products around it, what its kernels keep in
/// memory and what multiplies in them, or why it is not fused: the condition that fails first, at which node, on
/// which source line. Of a graph that was lowered with attentions; nothing is decided here.
///
///   softmax at mha.cpp:22: fused
///     one kernel over [nbatches, h=8, n_seq, n_seq]: 1 product makes scores, 1 product sums what became of them; ...
///       kept of each row: %14 max, %17 sum
///       by k0_attention: tile_mma, f32 as split bf16
///   softmax at mha.cpp:30: not fused
///     it reads the weights through a reshape or a slice, or with both operands (%31 contract at mha.cpp:31)
///
/// Of a GPU also the shared memory of each kernel, and which product keeps tensor cores from it, or what keeps it
/// from warpgroups:
///
///       by k0_attention_div_contract_mha_cpp_23: 17408 bytes of shared memory a block
///       not by tensor cores, which take bf16 or f16 alone: %12 contract multiplies f32 and f32 (mha.cpp:21)
std::string explain_attention(const Lowered& lowered, const MachineInfo& machine);

/// That, and explain_products().
std::string explain_fusion(const Lowered& lowered, const MachineInfo& machine);

}  // namespace lathe
