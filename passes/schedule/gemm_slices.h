#pragma once

#include "passes/schedule/gemm_pack.h"

/// Packs operands of f32 for tile_mma of slices. AMX takes subnormal slices as zeros, so that numbers below 2^-110
/// lose their last bits.
namespace lathe::schedule {

/// Rows row .. row + 32 of an operand, steps k0 .. k0 + depth, which are pairs of k and a multiple of 16, from
/// buffer[base] on: of every 32 k three blocks of slice_elements, one a slice, in which k and k + 16 are neighbours.
/// In a block of the left operand there are 32 k of one row after another; of the right one a pair of k of all rows
/// after another. Beyond the last row that one is repeated, or there is anything; beyond the last k there are zeros.
void emit_pack_left_slices(kernel::Builder& b, const GemmTile& tile, const SliverSource& from, kernel::Buffer buffer,
                           kernel::Value base);
void emit_pack_right_slices(kernel::Builder& b, const GemmTile& tile, const SliverSource& from, kernel::Buffer buffer,
                            kernel::Value base);

}  // namespace lathe::schedule
