#pragma once

#include <memory>

#include "passes/gpu/attention_tile.h"
#include "passes/lowering/attention_parts.h"

namespace lathe::gpu {

/// The products that make scores, one tile of rows and columns at a time.
class AttentionScores {
 public:
  AttentionScores(KernelContext& context, const LoweringContext& lowering, const AttentionParts& parts,
                  const AttentionTile& tile);

  /// Adds what the products' operands load.
  void add_programs(std::vector<const PointProgram*>& programs) const;
  void hoist();
  std::int64_t left_elements() const { return shared_[0]; }   ///< of shared memory, for the rows
  std::int64_t right_elements() const { return shared_[1]; }  ///< and for the columns
  std::int64_t exchanged_elements() const { return std::int64_t{tile_.span()} * exchange_line(); }
  /// `exchange`: where the sums of tensor cores change threads; for others it is not used.
  void pass_through(kernel::Buffer left, kernel::Buffer right, kernel::Buffer exchange);
  /// Declares the thread's registers.
  void begin();

  /// Makes the tile from this row and column on, of the product whose accumulator is instruction `value`. All threads
  /// of the block call it; it ends with a barrier.
  void multiply(int value, kernel::Value outer, kernel::Value row, kernel::Value column,
                const AttentionThread& thread);
  /// Of the thread's r-th row, its columns: what the product last gave.
  kernel::Value sum(int value, int r);

 private:
  struct Product {
    Product(KernelContext& context, const LoweringContext& lowering, const AttentionParts::Score& score,
            const AttentionTile& tile);
    const AttentionParts::Score& part;
    OperandLoader row_loader, column_loader;
    StagedOperand rows, columns;
    std::vector<kernel::Var> sums;
  };
  Product& product(int value);
  /// The products of all steps, one after the other.
  void each_step(Product& p, kernel::Value outer, kernel::Value row, kernel::Value column, kernel::Value slot,
                 const std::function<void()>& multiplied);
  void multiply_by_tensor_cores(Product& p, kernel::Value outer, kernel::Value row, kernel::Value column,
                                const AttentionThread& thread);
  int exchange_line() const { return tile_.span() + tile_.own(); }

  KernelContext& context_;
  kernel::Builder& b_;
  AttentionTile tile_;
  std::vector<std::unique_ptr<Product>> products_;
  std::int64_t shared_[2] = {0, 0};
  kernel::Buffer exchange_;
};

}  // namespace lathe::gpu
