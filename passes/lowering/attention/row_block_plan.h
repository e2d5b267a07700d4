#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// How the elementwise program of an attention runs over a row block: some rows, all their columns. The row block is
/// kept in slots, one number for each row and column; at first they hold the scores. One loop over the columns
/// follows another where reductions along the rows stand between them; values that cost too much to compute again
/// stay in a slot for the loops that follow, and so does what the products that end the attention read.
class RowBlockPlan {
 public:
  /// Whether the row block lies in memory with all its columns, or each loop makes what it needs anew from scores
  /// that it makes anew, and products read their results as these come out: then scores alone are `reads`, and
  /// `writes` are results.
  enum class Memory : std::uint8_t { slots, none };
  /// `columns`: a bit for each domain dim that is a column; `results`: instructions that products read afterwards;
  /// `stored_bf16`: those of them whose slots hold them as bf16.
  RowBlockPlan(const ir::Graph& graph, const ElementwiseProgram& program, std::uint64_t columns,
               std::vector<int> results, Memory memory = Memory::slots, std::set<int> stored_bf16 = {});

  struct Loop {
    std::vector<int> reductions;  ///< that it finishes
    std::vector<const ElementwiseStore*> stores;
    std::vector<int> reads;                   ///< values that it finds in their slots
    std::vector<std::pair<int, int>> writes;  ///< value, slot: after all reads of the same row and column
    std::vector<int> fixed;                   ///< values that it needs and that do not vary along the columns
  };
  const std::vector<Loop>& loops() const { return loops_; }
  /// Stores of values that do not vary along the columns, once all loops are done.
  const std::vector<const ElementwiseStore*>& row_stores() const { return row_stores_; }
  int slots() const { return static_cast<int>(slot_dtypes_.size()); }
  DType slot_dtype(int slot) const { return slot_dtypes_[static_cast<std::size_t>(slot)]; }
  /// Where a value lies that loop `loop` (or, loops().size(), the products) finds there.
  int slot_of(int value) const { return slots_.at(value); }
  bool varies(int value) const { return (program_.depends[static_cast<std::size_t>(value)] & columns_) != 0; }

 private:
  bool is_result(int value) const;
  void find_levels();
  int cost(int value) const;
  void find_saved();
  std::vector<bool> computed_in(int loop) const;
  bool found_in_slot(int value, int loop) const;
  void assign_slots();
  std::vector<int> roots(int loop) const;

  const ir::Graph& graph_;
  const ElementwiseProgram& program_;
  std::uint64_t columns_;
  std::vector<int> results_;
  Memory memory_;
  std::set<int> stored_bf16_;
  std::vector<int> levels_;
  std::vector<bool> saved_;  ///< by value: stays in a slot after the loop of its level
  std::map<int, int> slots_;
  std::vector<DType> slot_dtypes_;
  std::vector<Loop> loops_;
  std::vector<const ElementwiseStore*> row_stores_;
};

}  // namespace lathe
