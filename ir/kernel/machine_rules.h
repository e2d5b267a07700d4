#pragma once

#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "ir/kernel/kernel.h"
#include "ir/support/error.h"

/// The verifier's rules for the operations that stand for one machine instruction of a GPU.
namespace lathe::kernel {

/// Throws InternalError naming the kernel, what is wrong and the rule's label, unless the condition holds.
template <class... Args>
void require(const Kernel& kernel, bool condition, std::string_view label, fmt::format_string<Args...> text,
             Args&&... args) {
  if (condition) return;
  throw InternalError(
      fmt::format("kernel {}: {}  [{}]", kernel.name, fmt::format(text, std::forward<Args>(args)...), label));
}

/// Throws [type] unless what `what` names is of the type.
void want(const Kernel& kernel, Type have, Type type, std::string_view what);

/// What follows from a from_lane, from_consumers, an mma or a wgmma alone, its operands being in scope: their types;
/// of a product operands in shared memory (mma_operands), both bf16 or both f16 (mma_types), tiles and sums that fit
/// each other (mma_shape), places that are multiples of 16 bytes, of a wgmma of 1024, where they are known
/// (alignment).
void verify_of_warp(const Kernel& kernel, const Instruction& in);
void verify_group_mma(const Kernel& kernel, const Wgmma& s);
/// The types of a dot_pairs or bf16_slices, whose operands are in scope.
void verify_of_bf16(const Kernel& kernel, const Instruction& in);
/// Sums of f32 in stack scratch, operands of bf16 that are not shared (tile_operands), 16 or 32 rows and columns, a
/// depth that is a multiple of 32 where it is known (tile_shape), lines of 32 and 64 in slices (tile_slices).
void verify_tile_mma(const Kernel& kernel, const TileMma& s);
/// From a parameter that is only read to shared memory of the same type (copy_buffers).
void verify_async_copy(const Kernel& kernel, const AsyncCopy& copy);
/// A map is of a parameter of 2-byte elements that is only read, by constants and dims (map_tensor), of 2 to 5 dims,
/// a box of 64 elements by as many lines as a machine takes (map_box), at multiples of 16 bytes where they are known
/// (alignment).
void verify_map(const Kernel& kernel, const TensorMap& map);
/// A box goes to shared memory of the map's type (copy_buffers), from as many coordinates as it has dims (arity).
void verify_copy_box(const Kernel& kernel, const CopyBox& copy);
/// A thread.x loop from 0, step 1, whose constant length is a multiple of a warp: its index tells the lane.
bool is_whole_warps(const Kernel& kernel, const Loop& loop);

}  // namespace lathe::kernel
