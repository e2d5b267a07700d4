#pragma once

#include <llvm/IR/IRBuilder.h>

#include "ir/kernel/kernel.h"

namespace lathe::codegen {

/// A matrix in memory: its first element, and how far it is from one line to the next, in elements, inside in bytes.
struct TileMatrix {
  llvm::Value *first = nullptr, *line = nullptr;
};

/// Emits a tile_mma as AMX instructions. Of the eight tile registers, all of 16 rows of 64 bytes, 0 to 3 are sums,
/// 4 and 5 rows of the left operand, 6 and 7 columns of the right one.
class TileOps {
 public:
  explicit TileOps(llvm::IRBuilder<>& builder) : b_(builder) {}

  /// Sets the shapes of the tile registers, once before all products of a function.
  void configure();
  /// Leaves the thread as one that has never used the registers.
  void release();
  /// ahead: where the lines lie that mma asks for; null if it asks for none.
  void multiply(const kernel::TileMma& mma, const TileMatrix& sums, const TileMatrix& left, const TileMatrix& right,
                llvm::Value* depth, llvm::Value* ahead);

 private:
  void call(llvm::Intrinsic::ID id, llvm::ArrayRef<int> registers);
  void access(llvm::Intrinsic::ID id, int tile, llvm::Value* at, llvm::Value* line);
  void load(int tile, llvm::Value* at, llvm::Value* line);
  llvm::Value* times(llvm::Value* value, int by);
  void ask_for_lines(llvm::Value* from, int first, int last);
  void step(const kernel::TileMma& mma, const TileMatrix& left, const TileMatrix& right);
  void step_of_slices(const kernel::TileMma& mma, const TileMatrix& left, const TileMatrix& right, llvm::Value* k,
                      llvm::Value* ahead);

  llvm::IRBuilder<>& b_;
};

}  // namespace lathe::codegen
