#include "ir/kernel/intrinsics/tile_mma.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/intrinsics/hooks.h"
#include "codegen/llvm/memory_ops.h"

namespace lathe::codegen {

using kernel::tile_depth;
using kernel::tile_side;
using llvm::Value;

namespace {

constexpr int tiles = 8, row_bytes = 64, first_left = 4, first_right = 6;
constexpr int f32_bytes = 4, bf16_bytes = 2;

int sum_tile(int row, int column) { return 2 * row + column; }

/// A matrix in memory: its first element and its row stride, in elements or (inside TileOps) in bytes.
struct TileMatrix {
  llvm::Value *first = nullptr, *stride = nullptr;
};

/// Emits a tile_mma as AMX instructions. All eight tile registers have 16 rows of 64 bytes: 0 to 3 hold sums, 4 and 5
/// rows of the left operand, 6 and 7 columns of the right operand.
class TileOps {
 public:
  explicit TileOps(llvm::IRBuilder<>& builder) : b_(builder) {}

  /// Sets the shapes of the tile registers, once per function, before all products.
  void configure();
  /// Returns the tile registers to their initial state.
  void release();
  /// prefetched: address of the cache lines to prefetch, or null.
  void multiply(const kernel::TileMma& mma, const TileMatrix& sums, const TileMatrix& left, const TileMatrix& right,
                llvm::Value* depth, llvm::Value* prefetched);

 private:
  void call(llvm::Intrinsic::ID id, llvm::ArrayRef<int> registers);
  void access(llvm::Intrinsic::ID id, int tile, llvm::Value* at, llvm::Value* stride);
  void load(int tile, llvm::Value* at, llvm::Value* stride);
  llvm::Value* times(llvm::Value* value, int by);
  void prefetch_lines(llvm::Value* from, int first, int last);
  void step(const kernel::TileMma& mma, const TileMatrix& left, const TileMatrix& right);
  void split_bf16_step(const kernel::TileMma& mma, const TileMatrix& left, const TileMatrix& right, llvm::Value* k,
                       llvm::Value* prefetched);

  llvm::IRBuilder<>& b_;
};

/// Stores the 64 bytes of LDTILECFG: palette 1, at 16 the bytes per row of each register (16 bits), at 48 its number
/// of rows (8 bits).
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

void TileOps::access(llvm::Intrinsic::ID id, int tile, Value* at, Value* stride) {
  b_.CreateIntrinsic(id, {}, {b_.getInt8(static_cast<std::uint8_t>(tile)), at, stride});
}

void TileOps::load(int tile, Value* at, Value* stride) { access(llvm::Intrinsic::x86_tileloadd64, tile, at, stride); }

Value* TileOps::times(Value* value, int by) {
  return b_.CreateMul(value, b_.getInt64(static_cast<std::uint64_t>(by)));
}

/// Prefetches the cache lines of 64 bytes first .. last - 1, but not into L1, which is full of operands in use.
void TileOps::prefetch_lines(Value* from, int first, int last) {
  for (int line = first; line < last; ++line)
    prefetch_line(b_, b_.CreatePtrAdd(from, b_.getInt64(static_cast<std::uint64_t>(line * row_bytes))), false);
}

/// Multiplies 32 k, or one term of them, starting at these addresses. Each load is placed just before the first
/// product that needs it, so that products overlap with loads. An operand without an address is reused from the last
/// step.
void TileOps::step(const kernel::TileMma& mma, const TileMatrix& left, const TileMatrix& right) {
  const int rows = mma.rows / tile_side, columns = mma.columns / tile_side;
  for (int i = 0; i < rows; ++i) {
    if (left.first) load(first_left + i, b_.CreatePtrAdd(left.first, times(left.stride, i * tile_side)), left.stride);
    for (int j = 0; j < columns; ++j) {
      if (i == 0 && right.first)
        load(first_right + j, b_.CreatePtrAdd(right.first, b_.getInt64(static_cast<std::uint64_t>(j * row_bytes))),
             right.stride);
      call(llvm::Intrinsic::x86_tdpbf16ps, {sum_tile(i, j), first_left + i, first_right + j});
    }
  }
}

/// Multiplies all terms of 32 k; interleaves the prefetches with the products.
void TileOps::split_bf16_step(const kernel::TileMma& mma, const TileMatrix& left, const TileMatrix& right, Value* k,
                              Value* prefetched) {
  constexpr int bytes = bf16_bytes * kernel::term_elements;
  Value* done = times(b_.CreateUDiv(k, b_.getInt64(tile_depth)), kernel::bf16_terms * bytes);
  const auto term = [&](const TileMatrix& m, int s, int before) {
    if (s == before) return TileMatrix{nullptr, m.stride};
    Value* at = b_.CreatePtrAdd(b_.CreatePtrAdd(m.first, done), b_.getInt64(static_cast<std::uint64_t>(s * bytes)));
    return TileMatrix{at, m.stride};
  };
  kernel::TermProduct before{-1, -1};
  constexpr int products = std::size(kernel::term_products);
  for (int i = 0; i < products; ++i) {
    const kernel::TermProduct& p = kernel::term_products[i];
    if (prefetched)
      prefetch_lines(prefetched, mma.prefetch_lines * i / products, mma.prefetch_lines * (i + 1) / products);
    step(mma, term(left, p.left, before.left), term(right, p.right, before.right));
    before = p;
  }
}

void TileOps::multiply(const kernel::TileMma& mma, const TileMatrix& sums, const TileMatrix& left,
                       const TileMatrix& right, Value* depth, Value* prefetched) {
  const auto in_bytes = [&](const TileMatrix& m, int size) { return TileMatrix{m.first, times(m.stride, size)}; };
  const TileMatrix to = in_bytes(sums, f32_bytes), from_left = in_bytes(left, bf16_bytes),
                   from_right = in_bytes(right, bf16_bytes);
  const auto for_sums = [&](auto body) {
    for (int i = 0; i < mma.rows / tile_side; ++i)
      for (int j = 0; j < mma.columns / tile_side; ++j) {
        Value* row = b_.CreatePtrAdd(to.first, times(to.stride, i * tile_side));
        body(sum_tile(i, j), b_.CreatePtrAdd(row, b_.getInt64(static_cast<std::uint64_t>(j * row_bytes))));
      }
  };
  for_sums([&](int tile, Value* at) {
    if (mma.continues)
      load(tile, at, to.stride);
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
  if (prefetched) {
    Value* step = b_.CreateUDiv(k, b_.getInt64(tile_depth));
    prefetched = b_.CreatePtrAdd(prefetched, times(step, mma.prefetch_lines * row_bytes));
  }
  if (mma.split_bf16)
    split_bf16_step(mma, from_left, from_right, k, prefetched);
  else
    step(mma, {b_.CreatePtrAdd(left.first, times(k, bf16_bytes)), from_left.stride},
         {b_.CreatePtrAdd(right.first, b_.CreateMul(b_.CreateLShr(k, 1), from_right.stride)), from_right.stride});
  if (prefetched && !mma.split_bf16) prefetch_lines(prefetched, 0, mma.prefetch_lines);
  Value* next = b_.CreateAdd(k, b_.getInt64(tile_depth));
  k->addIncoming(next, body);
  b_.CreateCondBr(b_.CreateICmpSLT(next, depth), body, after);
  b_.SetInsertPoint(after);
  for_sums([&](int tile, Value* at) { access(llvm::Intrinsic::x86_tilestored64, tile, at, to.stride); });
}

llvm::Value* emit_tile_mma(const kernel::Instruction& in, KernelCode& kernel) {
  const auto s = kernel::TileMma::of(in);
  const auto matrix = [&](const kernel::TileMma::Matrix& m) {
    return TileMatrix{kernel.address(m.buffer, m.first), kernel.value(m.stride)};
  };
  Value* prefetched = s.prefetch == kernel::none ? nullptr : kernel.address(s.left.buffer, s.prefetch);
  const TileMatrix right = matrix(s.right), left = matrix(s.left), sums = matrix(s.sums);
  TileOps(kernel.builder()).multiply(s, sums, left, right, kernel.value(s.depth), prefetched);
  return nullptr;
}

std::string_view lacks_tiles(const TargetCpu& target) { return target.has_tiles() ? "" : "AMX"; }
void configure_tiles(llvm::IRBuilder<>& builder) { TileOps(builder).configure(); }
void release_tiles(llvm::IRBuilder<>& builder) { TileOps(builder).release(); }

constexpr IntrinsicHook tile_table[] = {
    {&kernel::tile_mma_record, emit_tile_mma, lacks_tiles, configure_tiles, release_tiles}};

}  // namespace

extern const std::span<const IntrinsicHook> tile_hooks;
constinit const std::span<const IntrinsicHook> tile_hooks{tile_table};

}  // namespace lathe::codegen
