#pragma once

#include <memory>

#include "passes/gpu/attention/block/attention_steps.h"
#include "passes/lowering/attention/attention_parts.h"

namespace lathe::gpu {

/// The products that make scores, one tile of rows and columns at a time.
class AttentionScores {
 public:
  AttentionScores(KernelContext& context, const LoweringContext& lowering, const AttentionParts& parts,
                  const AttentionTile& tile, AttentionSteps& steps);

  /// Adds what the products' operands load.
  void add_programs(std::vector<const ElementwiseProgram*>& programs) const;
  void hoist();
  std::int64_t left_elements() const { return shared_[0]; }   ///< of a slot, for the rows
  std::int64_t right_elements() const { return shared_[1]; }  ///< and for the columns
  std::int64_t exchanged_elements() const { return std::int64_t{tile_.span()} * exchange_stride(); }
  /// Slots of `right` begin `slot` elements apart. `exchange`: where the sums of tensor cores change threads; for
  /// others it is not used.
  void pass_through(kernel::Buffer left, kernel::Buffer right, std::int64_t slot, kernel::Buffer exchange);
  /// Declares the thread's registers.
  void begin();

  /// The product whose accumulator is instruction `value`.
  const AttentionSteps::Product& steps_of(int value) { return product(value).steps; }
  /// Makes the present tile of that product. All threads of the block call it.
  void multiply(int value, const AttentionThread& thread);
  /// Of the thread's r-th row, its columns: what the product last gave.
  kernel::Value sum(int value, int r);

 private:
  struct Product {
    Product(KernelContext& context, const LoweringContext& lowering, const AttentionParts::Score& score,
            const AttentionTile& tile);
    const AttentionParts::Score& part;
    OperandLoader row_loader, column_loader;
    StagedOperand rows, columns;
    AttentionSteps::Product steps;
    std::vector<kernel::Var> sums;
  };
  Product& product(int value);
  void multiply_by_tensor_cores(Product& p, const AttentionThread& thread);
  int exchange_stride() const { return tile_.span() + tile_.own(); }

  KernelContext& context_;
  kernel::Builder& b_;
  AttentionTile tile_;
  AttentionSteps& steps_;
  std::vector<std::unique_ptr<Product>> products_;
  std::int64_t shared_[2] = {0, 0};
  kernel::Buffer exchange_;
};

}  // namespace lathe::gpu
