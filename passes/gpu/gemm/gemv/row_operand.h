#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "passes/gpu/gemm/product_parts.h"
#include "passes/lowering/block_sums.h"

namespace lathe::gpu {

/// The rows of a GEMV's left operand, if they are computed (passes/fusion/few_rows/row_operands.h), or long: each
/// element is then loaded once by a block, and not once per thread that multiplies it. Each block computes them:
/// first the reductions along the rows, then the elements, a chunk of the rows at a time, in shared memory.
class RowOperand {
 public:
  RowOperand(ProductParts& parts, int rows);

  /// Whether the rows are computed in shared memory; otherwise each thread loads what it needs.
  bool is_computed() const { return is_computed_; }
  /// Whether a chunk has all elements.
  bool is_whole() const;
  std::int64_t chunk() const { return chunk_; }
  std::int64_t shared_bytes(int threads) const;

  /// Lets reduce() keep the first chunk of rows of any length, if the elements can replace what it loads, so that
  /// they are not loaded again: compute_kept() is then called for that chunk, once, before compute() for the others.
  void keep_first_chunk();
  bool keeps_first_chunk() const { return !kept_.empty() && !is_whole(); }

  /// Allocates the memory: called in a block loop, outside the thread loops.
  void allocate(int threads);
  /// Computes the reductions. All threads of the block call this and the following functions.
  void reduce(kernel::Value thread, kernel::Value batch, int lanes);
  /// Computes elements [first, first + count), at most a chunk, and waits for the block.
  void compute(kernel::Value thread, kernel::Value batch, kernel::Value first, kernel::Value count, int lanes);
  /// Same for the elements of the first chunk, if they are kept.
  void compute_kept(kernel::Value thread, kernel::Value batch, kernel::Value count, int lanes);
  /// Loads elements of the chunk, `at` elements after its first one.
  kernel::Value load(int row, kernel::Value at, int lanes, kernel::Value mask) const;

 private:
  using Scope = ElementwiseEmitter::Scope;
  /// A reduction along a row, in a thread.
  struct RowSum {
    int reduction, row, number;
    kernel::Var lanes = {};
    std::optional<BlockTotal> total = {};  ///< of a long sum
    kernel::Value value = {};
  };
  /// Loaded elements, by position along the row, row and load.
  using Loaded = std::vector<std::vector<std::vector<kernel::Value>>>;
  std::vector<int> reductions(int level) const;
  std::vector<int> loads_along(bool of_reductions) const;
  std::vector<int> loads_of_reductions() const;
  std::int64_t bytes_of_kept(const std::vector<int>& loads) const;
  void for_vectors(kernel::Value thread, kernel::Value count, std::optional<std::int64_t> known, int lanes,
                   std::size_t loads,
                   const std::function<void(const std::vector<kernel::Value>& at, kernel::Value mask)>& body);
  Loaded load_rows(const std::vector<int>& loads, const std::vector<int>& rows, kernel::Value batch,
                   const std::vector<kernel::Value>& at, int lanes, kernel::Value mask);
  std::vector<int> all_rows() const;
  void keep_loads(kernel::Value thread, kernel::Value batch, int lanes);
  Scope kept_scope(kernel::Value batch, int row, kernel::Value at, int lanes, kernel::Value mask);
  Scope loaded_scope(kernel::Value batch, int row, const std::vector<int>& loads,
                     const std::vector<kernel::Value>& values);
  std::vector<IndexGroup> at(kernel::Value batch, int row) const;
  std::vector<kernel::Value> sums_of_thread(const std::vector<int>& which, kernel::Value thread, kernel::Value batch,
                                            int lanes);
  void sum_rows(std::vector<RowSum>& sums, kernel::Value thread, kernel::Value batch, int lanes);
  void add_terms(const std::vector<RowSum>& sums, kernel::Value batch, kernel::Value k, int lanes, kernel::Value mask,
                 bool is_kept);
  kernel::Value identity_of(const RowSum& sum, int lanes) const;
  void compute_vectors(kernel::Value thread, kernel::Value batch, kernel::Value first, kernel::Value count, int lanes,
                       bool is_kept);
  void combine(const std::vector<int>& which, const std::vector<kernel::Value>& sums, kernel::Value thread);
  void emit_fixed(int row, int level);

  ProductParts& parts_;
  const ElementwiseProgram& program_;
  kernel::Builder& b_;
  std::vector<int> levels_;  // by instruction: the number of reductions that it waits for
  int rows_, threads_ = 0;
  std::int64_t chunk_ = 0;  // elements per row
  bool is_computed_;
  kernel::Buffer elements_ = {};
  std::map<int, kernel::Buffer> partials_;  // by reduction: a result per row and warp
  std::vector<int> kept_;                   // loads whose elements stay in shared memory: those of reductions
  std::vector<int> loads_;                  // those that the elements need
  std::map<int, kernel::Buffer> loaded_;    // by kept load: the rows
  std::deque<Scope> scopes_;                // by row
};

}  // namespace lathe::gpu
