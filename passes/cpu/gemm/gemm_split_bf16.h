#pragma once

#include "passes/cpu/gemm/gemm_pack.h"

/// Packs operands of f32 for tile_mma of split bf16; SplitBf16Sums finishes the sums that it leaves.
///
/// AMX takes subnormal terms and sums as zeros. Every number is therefore multiplied by 2^23 before it is split,
/// which makes the least subnormal the least normal number, so that no term of any f32 is subnormal; sums come out
/// 2^46 times too large, and what is lost of them is less than 2^-172 at a time, far below the least subnormal.
/// Numbers from 2^105 on and sums from 2^82 on overflow in this form and leave a sum that is not finite, as
/// infinities and NaN do: such sums are computed by fma instead.
namespace lathe::cpu {

inline constexpr double split_scale = 0x1p23;

/// Stores a row of each term of a block of 32 k: two vectors, zipped, at position + term * term_elements.
void store_split_bf16(kernel::Builder& b, kernel::Buffer buffer, kernel::Value position, kernel::Value first,
                      kernel::Value second);

/// Rows row .. row + 32 of an operand, steps k0 .. k0 + depth, which are pairs of k and a multiple of 16, from
/// buffer[base] on: of every 32 k three blocks of term_elements, one a term, in which k and k + 16 are neighbours.
/// In a block of the left operand there are 32 k of one row after another; of the right one a pair of k of all rows
/// after another. Beyond the last row that one is repeated, or there is anything; beyond the last k there are
/// zeros.
void emit_pack_left_split_bf16(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from,
                               kernel::Buffer buffer, kernel::Value base);
void emit_pack_right_split_bf16(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from,
                                kernel::Buffer buffer, kernel::Value base);

}  // namespace lathe::cpu
