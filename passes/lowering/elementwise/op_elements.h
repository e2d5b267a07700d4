#pragma once

#include <optional>
#include <vector>

#include "passes/lowering/elementwise/elementwise_builder.h"

namespace lathe {

inline constexpr int no_predicate = -1;

/// A request for an element; `predicate` says where it is needed.
struct ElementRead {
  ir::ValueId id;
  AffineIndex index;
  int predicate;
};

/// An element whose operands are being computed.
struct OpElement {
  ir::ValueId id;
  AffineIndex index;
  int predicate;
  std::vector<int> operands = {};  ///< operands computed so far
  std::vector<int> inside = {};    ///< concat and pad: for each operand, whether the element is inside it
  Dim start = 0;                   ///< concat: start of the next operand
};

/// Emits the code of single elements of computed ops, given the elements of their operands. Each op that an
/// elementwise program may contain has its operands in next_read() and its code in emit().
class OpElements {
 public:
  /// `rank`: that of the domain. The other arguments must outlive this object.
  OpElements(const ir::Graph& graph, const FusionPlan& plan, ElementwiseBuilder& code, int rank)
      : graph_(graph), plan_(plan), code_(code), rank_(rank) {}

  /// Returns the next operand to read for an element, or nullopt if all operands have been read.
  std::optional<ElementRead> next_read(OpElement& element);
  /// Emits the element once all operands are available. Returns its instruction.
  int emit(OpElement& element);

 private:
  std::size_t dim_of(const ir::Node& node) const;
  int iota(ir::ValueId id, const AffineIndex& index);
  ElementRead drawn_number(const OpElement& element) const;
  int random(const OpElement& element, const std::vector<Dim>& strides);
  ElementRead gathered_index(const OpElement& element) const;
  int gather(const OpElement& element);
  int row_sum(ir::ValueId id, const AffineIndex& index, int predicate);
  int index_check(const Dim& size, int index, DType dtype, int predicate);
  int in_bounds(const AffineComponent& component, const Dim& size, int predicate);
  ElementRead concat_part(OpElement& element, std::size_t i);
  int concat(const OpElement& element);
  ElementRead padded(OpElement& element);
  int pad(const OpElement& element);

  const ir::Graph& graph_;
  const FusionPlan& plan_;
  ElementwiseBuilder& code_;
  int rank_;
};

}  // namespace lathe
