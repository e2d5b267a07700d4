#pragma once

#include <unordered_map>

#include "passes/lowering/elementwise/elementwise_program.h"

namespace lathe {

/// Appends instructions to an elementwise program. Equal instructions are emitted only once.
class ElementwiseBuilder {
 public:
  explicit ElementwiseBuilder(Shape domain) { program_.domain = std::move(domain); }

  /// Returns the instruction's index. row_sum instructions are never shared, even if two nodes sum the same values.
  int emit(ElementwiseInstruction instruction);
  int constant(const Number& value, DType dtype);  ///< rounded once to the dtype
  int scalar(ScalarOp op, DType dtype, std::vector<int> args, ir::ValueId node);

  ElementwiseProgram& program() { return program_; }

 private:
  ElementwiseProgram program_;
  std::unordered_multimap<std::size_t, int> known_;  ///< instructions by hash
};

}  // namespace lathe
