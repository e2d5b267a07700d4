#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/intrinsics/split_bf16.h"

namespace lathe::kernel {

inline constexpr int tile_side = 16, tile_depth = 32;
inline constexpr int term_elements = 2 * tile_side * tile_depth;

/// The products of bf16 terms whose sum is an f32 product accurate to its last bits, smallest first (Henry, Tang and
/// Heinecke 2019, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations"). Each
/// product shares an operand with the previous one.
struct TermProduct {
  int left, right;
};
inline constexpr TermProduct term_products[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};

/// Evaluates one sum of a tile_mma after one step, as TDPBF16PS does: c + (even + odd). `even` and `odd` sum 16
/// products each, starting from 0, over even and odd k in ascending order, one fma per product. Everything is f32,
/// rounded to nearest even. Subnormal operands are flushed to signed zero, as are results that are subnormal after
/// rounding to 24 bits. a, b: tile_depth elements in order of k.
Scalar evaluate_tile_sum(const Scalar* a, const Scalar* b, Scalar c);

/// Adds left * right to a block of sums, as AMX's TDPBF16PS does (evaluate_tile_sum). Element (m, n) of the f32 sums
/// is sums.buffer[first + m * stride + n]. Element (m, k) of the left operand is left.buffer[first + m * stride + k].
/// The right operand is in VNNI layout: (k, n) is right.buffer[first + k / 2 * stride + 2 * n + k % 2].
struct TileMma {
  struct Matrix {
    BufferId buffer = none;
    ValueId first = none, stride = none;
  };
  Matrix sums{}, left{}, right{};
  int rows = 0, columns = 0;  ///< of the sums: 16 or 32
  ValueId depth = none;       ///< extent of K: a multiple of tile_depth
  bool continues = false;     ///< adds to the existing sums; otherwise starts from zeros
  /// Each element is a sum of three bf16 terms; multiplies term_products, in this order, for every 32 k. Term s of 32
  /// k is a block of term_elements with rows of 32 (left) and 64 (right), at (k / 32 * 3 + s) * term_elements.
  bool split_bf16 = false;
  /// For every tile_depth k, prefetches `prefetch_lines` cache lines of 64 bytes of the left operand's buffer,
  /// starting at element `prefetch`, which may be out of bounds. `none` disables prefetching.
  ValueId prefetch = none;
  int prefetch_lines = 0;

  static TileMma of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static TileMma parse(IntrinsicReader& in);
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
  std::vector<BlockAccess> blocks() const;
};
extern const IntrinsicRecord tile_mma_record;

/// A block of rows x columns sums of left * right over `depth` k, a multiple of 32. `continues` adds to the existing
/// sums instead of zeros.
struct TileBlock {
  int rows = 32, columns = 32;
  bool continues = false;
  bool split_bf16 = false;
  Builder::Bound prefetch = 0;  ///< with prefetch_lines: see TileMma
  int prefetch_lines = 0;       ///< lines of 64 bytes per 32 k; 0: no prefetching
};
void tile_mma(Builder& builder, const TileBlock& block, const Builder::Rows& sums, const Builder::Rows& left,
              const Builder::Rows& right, Builder::Bound depth);

}  // namespace lathe::kernel
