#include "codegen/llvm/tile_ops.h"

#include <llvm/IR/IntrinsicsX86.h>

namespace lathe::codegen {

using kernel::tile_depth;
using kernel::tile_side;
using llvm::Value;

namespace {

constexpr int tiles = 8, row_bytes = 64, first_left = 4, first_right = 6;
constexpr std::uint64_t f32_bytes = 4, bf16_bytes = 2;

int sum_tile(int row, int column) { return 2 * row + column; }

}  // namespace

/// The 64 bytes of LDTILECFG: palette 1, at 16 the bytes of a row of each register (16 bits), at 48 its rows (8
/// bits).
void TileOps::configure() {
  std::uint8_t bytes[64] = {1};
  for (std::size_t i = 0; i < tiles; ++i) {
    bytes[16 + 2 * i] = row_bytes;
    bytes[48 + i] = tile_side;
  }
  llvm::Constant* shapes = llvm::ConstantDataVector::get(b_.getContext(), bytes);
  llvm::AllocaInst* memory = b_.CreateAlloca(shapes->getType());
  memory->setAlignment(llvm::Align(64));
  b_.CreateAlignedStore(shapes, memory, llvm::Align(64));
  b_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {memory});
}

void TileOps::release() { b_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {}); }

void TileOps::call(llvm::Intrinsic::ID id, llvm::ArrayRef<int> registers) {
  llvm::SmallVector<Value*, 3> numbers;
  for (const int number : registers) numbers.push_back(b_.getInt8(static_cast<std::uint8_t>(number)));
  b_.CreateIntrinsic(id, {}, numbers);
}

void TileOps::access(llvm::Intrinsic::ID id, int tile, Value* at, Value* line) {
  b_.CreateIntrinsic(id, {}, {b_.getInt8(static_cast<std::uint8_t>(tile)), at, line});
}

Value* TileOps::bytes_of(Value* elements, std::uint64_t size) { return b_.CreateMul(elements, b_.getInt64(size)); }

/// 32 k. A load stands just before the first product that wants it, so that products run beside the loads.
void TileOps::step(const kernel::TileMma& mma, llvm::ArrayRef<Value*> left, llvm::ArrayRef<Value*> right,
                   Value* left_line, Value* right_line) {
  const int rows = mma.rows / tile_side, columns = mma.columns / tile_side;
  const auto load = [&](int tile, Value* at, Value* line) {
    access(llvm::Intrinsic::x86_tileloadd64, tile, at, line);
  };
  for (int i = 0; i < rows; ++i) {
    load(first_left + i, left[static_cast<std::size_t>(i)], left_line);
    for (int j = 0; j < columns; ++j) {
      if (i == 0) load(first_right + j, right[static_cast<std::size_t>(j)], right_line);
      call(llvm::Intrinsic::x86_tdpbf16ps, {sum_tile(i, j), first_left + i, first_right + j});
    }
  }
}

void TileOps::multiply(const kernel::TileMma& mma, const TileMatrix& sums, const TileMatrix& left,
                       const TileMatrix& right, Value* depth) {
  const int rows = mma.rows / tile_side, columns = mma.columns / tile_side;
  const auto place = [&](Value* first, Value* bytes) { return b_.CreatePtrAdd(first, bytes); };
  Value *sums_line = bytes_of(sums.line, f32_bytes), *left_line = bytes_of(left.line, bf16_bytes),
        *right_line = bytes_of(right.line, bf16_bytes);
  const auto for_sums = [&](auto body) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        Value* row =
            place(sums.first, b_.CreateMul(sums_line, b_.getInt64(static_cast<std::uint64_t>(i * tile_side))));
        body(sum_tile(i, j), place(row, b_.getInt64(static_cast<std::uint64_t>(j * row_bytes))));
      }
  };
  for_sums([&](int tile, Value* at) {
    if (mma.continues)
      access(llvm::Intrinsic::x86_tileloadd64, tile, at, sums_line);
    else
      call(llvm::Intrinsic::x86_tilezero, {tile});
  });
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  auto* body = llvm::BasicBlock::Create(b_.getContext(), "tiles", function);
  auto* after = llvm::BasicBlock::Create(b_.getContext(), "after", function);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  b_.CreateCondBr(b_.CreateICmpSGT(depth, b_.getInt64(0)), body, after);
  b_.SetInsertPoint(body);
  llvm::PHINode* k = b_.CreatePHI(b_.getInt64Ty(), 2, "k");
  k->addIncoming(b_.getInt64(0), before);
  llvm::SmallVector<Value*, 2> left_places, right_places;
  Value* left_at = place(left.first, bytes_of(k, bf16_bytes));
  Value* right_at = place(right.first, b_.CreateMul(b_.CreateLShr(k, 1), right_line));
  for (int i = 0; i < rows; ++i)
    left_places.push_back(
        place(left_at, b_.CreateMul(left_line, b_.getInt64(static_cast<std::uint64_t>(i * tile_side)))));
  for (int j = 0; j < columns; ++j)
    right_places.push_back(place(right_at, b_.getInt64(static_cast<std::uint64_t>(j * row_bytes))));
  step(mma, left_places, right_places, left_line, right_line);
  Value* next = b_.CreateAdd(k, b_.getInt64(tile_depth));
  k->addIncoming(next, body);
  b_.CreateCondBr(b_.CreateICmpSLT(next, depth), body, after);
  b_.SetInsertPoint(after);
  for_sums([&](int tile, Value* at) { access(llvm::Intrinsic::x86_tilestored64, tile, at, sums_line); });
}

}  // namespace lathe::codegen
