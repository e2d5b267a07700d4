#pragma once

#include <variant>
#include <vector>

#include "ir/support/shape.h"
#include "ir/tensor/graph.h"
#include "passes/fusion/regions/region_kind.h"

namespace lathe {

struct Region;

// The forms of a region, in the order of RegionKind. Kinds without data of their own have empty forms.

struct RowsRegion {
  int inner = 0;  ///< number of trailing dims that its reductions fold; 0 without reductions
};
struct ProductRegion {};
struct ColumnsRegion {};
struct ScatterRegion {};
struct AttentionRegion {
  int row = -1;                      ///< the domain dim of the rows; the last one is that of the columns
  std::vector<int> sequential = {};  ///< outer dims that an output also sums over
  /// Outer dims that only reductions among the members go over, which accumulate in memory.
  std::vector<int> accumulated = {};
  std::vector<ir::ValueId> scores = {};  ///< members over rows and columns: contractions, elementwise, reductions
  /// A product region with its epilogue for each contraction that reads a value of `scores`. It has no initializer,
  /// which would need the complete Region.
  std::vector<Region> outputs;
};
struct ScanRegion {};
struct SortRegion {};
struct GroupedRegion {};
struct TriangularRegion {};
struct CollectiveRegion {};
struct LoopRegion {};

using RegionForm = std::variant<RowsRegion, ProductRegion, ColumnsRegion, ScatterRegion, AttentionRegion, ScanRegion,
                                SortRegion, GroupedRegion, TriangularRegion, CollectiveRegion, LoopRegion>;
/// Returns the form of a kind, without its data.
RegionForm form_of(RegionKind kind);

/// Nodes that become one kernel (a matmul also packs its operands first). The domain is the index space of the
/// kernel: the shape of the elementwise nodes, of the contraction's result, or of the reduced operand.
struct Region {
  RegionForm form;
  Shape domain;
  /// In topological order; the first is the contraction, reduction or scatter. An attention lists the members of all
  /// its outputs too.
  std::vector<ir::ValueId> members;

  RegionKind kind() const { return static_cast<RegionKind>(form.index()); }
  /// Return the data of a kind. Throw InternalError for a region of another kind.
  const RowsRegion& rows() const;
  const AttentionRegion& attention() const;
  /// Returns the number of trailing dims that are folded: 0 unless it is a rows region with reductions.
  int folded_dims() const;
};

}  // namespace lathe
