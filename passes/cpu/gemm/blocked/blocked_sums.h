#pragma once

#include <optional>
#include <vector>

#include "passes/cpu/gemm/blocked/blocked_operands.h"

namespace lathe::cpu {

/// The sums of a task of a blocked matmul: accumulators in registers, scratch between passes over k, and the epilogue
/// that receives the results.
class BlockedSums {
 public:
  /// The vectors of a register tile, row by row.
  using Accumulators = std::vector<kernel::Var>;

  BlockedSums(kernel::Builder& b, const GemmPlan& plan, const Epilogue& epilogue)
      : b_(b), tile_(plan.tile), epilogue_(epilogue) {}

  /// Sets the sizes, without the remaining columns.
  void set_sizes(const GemmSizes& sizes) { sizes_ = sizes; }
  /// Allocates scratch for this number of sums.
  void allocate(std::int64_t sums);
  /// Allocates scratch for the sums of a block that several passes continue.
  void allocate_parts(std::int64_t sums);

  /// Declares the accumulators of a tile of nv vectors of columns.
  Accumulators zeros(const TilePosition& at, int nv);
  const kernel::Var& at(const Accumulators& acc, int i, int v, int nv) const { return acc[i * nv + v]; }
  void load(const Accumulators& acc, const TilePosition& at, int nv) { load_from(sums_, acc, at, nv); }
  void load_parts(const Accumulators& acc, const TilePosition& at, int nv) { load_from(parts_, acc, at, nv); }
  void store(const Accumulators& acc, const TilePosition& at, int nv) { store_to(sums_, acc, at, nv); }
  void store_parts(const Accumulators& acc, const TilePosition& at, int nv) { store_to(parts_, acc, at, nv); }
  /// Allocates scratch for the rounding errors of the totals, which are compensated if `compensates`.
  void allocate_excess(std::int64_t sums, kernel::Value compensates);
  /// Adds the sums of a finished block to the totals. The first block has none and is stored.
  void add_to_total(const Accumulators& acc, const TilePosition& at, int nv, kernel::Value continues);

  /// Passes a whole tile from registers to the epilogue.
  void finish_tile(const GemmTask& t, const TilePosition& at, int nv, const Accumulators& acc);
  /// Passes a row of the tile above to the epilogue.
  void finish_above(const GemmTask& t, const TilePosition& at, kernel::Value row, int nv);
  /// Passes the finished rows m .. of a row block, whose sums start at `base`, to the epilogue.
  void finish_rows(const GemmTask& t, kernel::Value m, kernel::Value base);

  /// Returns the number of vectors of columns in the last tile: 0 if unknown, nv if there are only whole tiles.
  int known_tail() const;

 private:
  void each_vector(const Accumulators& acc, const TilePosition& at, int nv,
                   const std::function<void(const kernel::Var& sum, kernel::Value position)>& body) const;
  void load_from(kernel::Buffer from, const Accumulators& acc, const TilePosition& at, int nv);
  void add_to_compensated_total(const Accumulators& acc, const TilePosition& at, int nv, kernel::Value continues);
  void store_to(kernel::Buffer to, const Accumulators& acc, const TilePosition& at, int nv);
  kernel::Value load_vector(kernel::Buffer from, kernel::Value position);
  kernel::Value mask_of(kernel::Value n, int nv);
  int vector_bytes() const;

  kernel::Builder& b_;
  const GemmTile& tile_;
  const Epilogue& epilogue_;
  GemmSizes sizes_ = {};
  kernel::Buffer sums_, parts_, excess_;
  std::optional<kernel::Value> compensates_;  ///< set if excess_ is allocated
};

}  // namespace lathe::cpu
