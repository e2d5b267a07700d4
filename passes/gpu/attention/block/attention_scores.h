#pragma once

#include <memory>

#include "passes/gpu/attention/block/attention_steps.h"
#include "passes/gpu/gpu_context.h"
#include "passes/lowering/attention/attention_parts.h"

namespace lathe::gpu {

/// The matmuls that compute scores, one tile of rows and columns at a time.
class AttentionScores {
 public:
  AttentionScores(KernelContext& context, const GpuContext& lowering, const AttentionParts& parts,
                  const AttentionTile& tile, AttentionSteps& steps);

  /// Adds the programs that load the operands of the matmuls.
  void add_programs(std::vector<const ElementwiseProgram*>& programs) const;
  void hoist();
  std::int64_t left_elements() const { return shared_[0]; }   ///< per slot, for the rows
  std::int64_t right_elements() const { return shared_[1]; }  ///< per slot, for the columns
  std::int64_t exchanged_elements() const { return std::int64_t{tile_.span()} * exchange_stride(); }
  /// Sets the shared memory. Slots of `right` start `slot` elements apart. `exchange` passes the sums of tensor cores
  /// between threads; it is unused without tensor cores.
  void pass_through(kernel::Buffer left, kernel::Buffer right, std::int64_t slot, kernel::Buffer exchange);
  /// Declares the thread's registers.
  void begin();

  /// Returns the steps of the matmul whose accumulator is instruction `value`.
  const AttentionSteps::Product& steps_of(int value) { return product(value).steps; }
  /// Computes the current tile of that matmul. All threads of the block call it.
  void multiply(int value, const AttentionThread& thread);
  /// Returns the last result of the matmul for the thread's r-th row and its columns.
  kernel::Value sum(int value, int r);

 private:
  struct Product {
    Product(KernelContext& context, const GpuContext& lowering, const AttentionParts::Score& score,
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
