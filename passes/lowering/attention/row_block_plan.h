#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// Plans how the elementwise program of an attention runs over a row block (a few rows with all their columns). The
/// row block is stored in slots, each with one number per row and column; initially they hold the scores. Reductions
/// along the rows separate successive loops over the columns. Values that are expensive to recompute stay in a slot
/// for later loops, and so do values that the output matmuls read.
class RowBlockPlan {
 public:
  /// slots: the whole row block is in memory. none: each loop recomputes scores and values, and the output matmuls
  /// consume results directly. With none, `reads` contains only scores and `writes` contains results.
  enum class Memory : std::uint8_t { slots, none };
  /// `columns`: one bit per domain dim that is a column. `results`: instructions that the output matmuls read.
  /// `stored_bf16`: results that are stored in their slots as bf16.
  RowBlockPlan(const ir::Graph& graph, const ElementwiseProgram& program, std::uint64_t columns,
               std::vector<int> results, Memory memory = Memory::slots, std::set<int> stored_bf16 = {});

  struct Loop {
    std::vector<int> reductions;  ///< reductions that complete in this loop
    std::vector<const ElementwiseStore*> stores;
    std::vector<int> reads;                   ///< values that are read from their slots
    std::vector<std::pair<int, int>> writes;  ///< (value, slot): written after all reads of the same row and column
    std::vector<int> fixed;                   ///< operands that do not vary along the columns
  };
  const std::vector<Loop>& loops() const { return loops_; }
  /// Stores of values that do not vary along the columns, performed after all loops.
  const std::vector<const ElementwiseStore*>& row_stores() const { return row_stores_; }
  int slots() const { return static_cast<int>(slot_dtypes_.size()); }
  DType slot_dtype(int slot) const { return slot_dtypes_[slot]; }
  /// The slot of a value when loop `loop` runs; loops().size() means the output matmuls.
  int slot_of(int value) const { return slots_.at(value); }
  bool varies(int value) const { return (program_.depends[value] & columns_) != 0; }

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
  std::vector<bool> saved_;  ///< by value: kept in a slot after the loop of its level
  std::map<int, int> slots_;
  std::vector<DType> slot_dtypes_;
  std::vector<Loop> loops_;
  std::vector<const ElementwiseStore*> row_stores_;
};

}  // namespace lathe
