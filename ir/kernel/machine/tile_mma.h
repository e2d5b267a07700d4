#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/machine/record.h"
#include "ir/kernel/machine/split_bf16.h"

namespace lathe::kernel {

inline constexpr int tile_side = 16, tile_depth = 32;
inline constexpr int term_elements = 2 * tile_side * tile_depth;

/// The products of terms that make one of f32 to its last bits, least first (Henry, Tang and Heinecke 2019,
/// "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations"). From one to the
/// next one operand mostly stays.
struct TermProduct {
  int left, right;
};
inline constexpr TermProduct term_products[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};

/// One sum of a tile_mma after one step, as TDPBF16PS has it: c + (even + odd), where `even` and `odd` are sums of 16
/// products each, from 0, of the elements of even and odd k in ascending order, one fma a product. All of it in f32,
/// rounded to nearest even, where subnormal operands count as zeros of their sign, and so do results that are so
/// small when rounded to 24 bits. a, b: tile_depth elements in order of k.
Scalar evaluate_tile_sum(const Scalar* a, const Scalar* b, Scalar c);

/// Adds left * right to a block of sums, as AMX's TDPBF16PS does it (evaluate_tile_sum). Element (m, n) of the sums
/// is sums.buffer[first + m * stride + n], of f32; (m, k) of the left operand left.buffer[first + m * stride
/// + k]; (k, n) of the right one, which lies in pairs of k, right.buffer[first + k / 2 * stride + 2 * n + k % 2].
struct TileMma {
  struct Matrix {
    BufferId buffer = none;
    ValueId first = none, stride = none;
  };
  Matrix sums{}, left{}, right{};
  int rows = 0, columns = 0;  ///< of the sums: 16 or 32
  ValueId depth = none;       ///< how many k: a multiple of tile_depth
  bool continues = false;     ///< whether it adds to what is there; else to zeros
  /// Elements are sums of three terms of bf16, of which term_products are multiplied, in this order for each 32 k.
  /// Term s of 32 k is a block of term_elements with rows of 32 and of 64, at (k / 32 * 3 + s) * term_elements.
  bool split_bf16 = false;
  /// For every tile_depth k so many cache lines of 64 bytes of the left operand's buffer are prefetched, from element
  /// `prefetch` on, which may be out of bounds. Nothing is prefetched where it is none.
  ValueId prefetch = none;
  int prefetch_lines = 0;

  static TileMma of(const Instruction& in);
  Instruction instruction() const;
  void verify(const MachineRules& rules) const;
  std::string text(const MachineText& text) const;
  void interpret(const MachineRun& run, ValueId id, Thread& t) const;
  std::vector<BlockAccess> blocks() const;
};
extern const MachineRecord tile_mma_record;

/// A block of rows x columns sums: left * right over `depth` k, a multiple of 32, added to them or, unless it
/// continues, to zeros.
struct TileBlock {
  int rows = 32, columns = 32;
  bool continues = false;
  bool split_bf16 = false;
  Builder::Bound prefetch = 0;  ///< with prefetch_lines: see TileMma
  int prefetch_lines = 0;       ///< of 64 bytes for every 32 k; 0: nothing is prefetched
};
void tile_mma(Builder& builder, const TileBlock& block, const Builder::Rows& sums, const Builder::Rows& left,
              const Builder::Rows& right, Builder::Bound depth);

}  // namespace lathe::kernel
