#pragma once

#include "passes/cpu/gemm/pack/gemm_pack.h"

/// Packs f32 operands for tile_mma of split bf16; SplitBf16Sums finishes the resulting sums.
///
/// AMX treats subnormal terms and sums as zeros. Every number is therefore multiplied by 2^23 before it is split.
/// This maps the least subnormal to the least normal number, so that no term of any f32 is subnormal. Sums are then
/// 2^46 times too large, and each loss is less than 2^-172, far below the least subnormal. Numbers from 2^105 on and
/// sums from 2^82 on overflow in this form. Like infinities and NaN, they leave a sum that is not finite; such sums
/// are computed by fma instead.
namespace lathe::cpu {

inline constexpr double split_scale = 0x1p23;

/// Stores a row of each term of a block of 32 k: two interleaved vectors at position + term * term_elements.
void store_split_bf16(kernel::Builder& b, kernel::Buffer buffer, kernel::Value position, kernel::Value first,
                      kernel::Value second);

/// Packs rows row .. row + 32 of an operand, steps k0 .. k0 + depth, from buffer[base] on. Steps are pairs of k, and
/// their number is a multiple of 16. Every 32 k have three blocks of term_elements, one per term, in which k and k +
/// 16 are adjacent. A block of the left operand holds the 32 k of one row after another; a block of the right one
/// holds a pair of k of all rows after another. Rows past the last one repeat it or are undefined; k past the last
/// one are zero.
void emit_pack_left_split_bf16(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from,
                               kernel::Buffer buffer, kernel::Value base);
void emit_pack_right_split_bf16(kernel::Builder& b, const GemmTile& tile, const MicroPanelSource& from,
                                kernel::Buffer buffer, kernel::Value base);

}  // namespace lathe::cpu
