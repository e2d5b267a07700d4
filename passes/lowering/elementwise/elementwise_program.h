#pragma once

#include <map>
#include <vector>

#include "passes/fusion/fusion.h"

namespace lathe {

/// One instruction of the code that a fused region runs at each point of its iteration domain: straight-line SSA
/// code. Loads, indices and random counters are linear forms over the domain; views are folded into these forms.
struct ElementwiseInstruction {
  enum class Kind {
    constant,   ///< `value`
    index,      ///< value of the linear form, i64
    in_bounds,  ///< 0 <= form < size
    load,       ///< buffer[form]; 0 if predicate args[0] is given and false
    checked,    ///< args[0], an index that must be in [0, size); predicate args[1] if given
    gather,     ///< buffer[form + clamp(args[0]) * stride], args[0] checked against size; predicate args[1] if given
    /// The sum of buffer[form + t * stride] over the positions t of one row of the scatter_add `node`. These are
    /// entries [size + args[0], size + args[1]) of its positions storage; see scatter_positions.
    row_sum,
    /// Uniform draw number `form`, or args[2] if given, of `stream`, keyed by args[0] = seed and args[1] = step.
    random,
    scalar,       ///< op of args
    reduce,       ///< op over the inner dims (or, in a columns region, the reduced dims) of args[0]
    column,       ///< op over the rows of args[0] in an attention over outer dims, see partial_columns.h
    accumulator,  ///< the matmul result at this point
  };
  Kind kind = Kind::constant;
  DType dtype = f32;  ///< dtype of the result; bf16 and f16 are represented as f32, rounded after each op
  Number value = 0;   ///< a number of type `dtype`
  Linear form = {};
  ir::ValueId buffer = {};  ///< node whose storage is read
  Dim stride = 0, size = 0;
  std::int64_t stream = 0;  ///< random stream; for accumulators their number
  ScalarOp op = ScalarOp::add;
  std::vector<int> args = {};
  ir::ValueId node = {};  ///< node that the instruction was created for
  bool operator==(const ElementwiseInstruction& other) const;
};

/// Stores instruction `value` at `form` of the storage of `node`.
struct ElementwiseStore {
  int value;
  ir::ValueId node;
  Linear form;
};

struct ElementwiseProgram {
  Shape domain;
  std::vector<ElementwiseInstruction> code;
  std::vector<ElementwiseStore> stores;
  /// By instruction: one bit per domain dim whose index it depends on.
  std::vector<std::uint64_t> depends;
  std::map<ir::ValueId, int> members;  ///< by node of the region: the instruction that computes it

  const ElementwiseInstruction& operator[](int id) const { return code[id]; }
  int size() const { return static_cast<int>(code.size()); }
  /// Approximate number of scalar operations per point, for choosing chunk sizes. Calls of the C library, such as f64
  /// functions, cost as much as hundreds of vectorized operations.
  std::int64_t work() const;
  /// Number of points along these dims of the domain.
  Dim points(const std::vector<int>& dims) const;
};

/// Offset of the list of positions in the storage of a scatter_add's positions; see scatter_positions.
Dim start_of_positions(const ir::Node& scatter);

/// Returns the program of a region: its members in order, with a store for each member that is kept. For an
/// attention, that of its members over rows and columns.
ElementwiseProgram region_program(const ir::Graph& graph, const FusionPlan& plan, const Region& region);

/// The program of one operand of a contraction or scatter_add over `domain`. Dim i of the operand runs along domain
/// dim dims[i]. `result` is the instruction that holds the element. Reductions that the operand computes (see
/// row_operands.h) fold the domain dim `row`.
struct OperandProgram {
  ElementwiseProgram program;
  int result;
};
OperandProgram operand_program(const ir::Graph& graph, const FusionPlan& plan, ir::ValueId operand,
                               const std::vector<int>& dims, const Shape& domain, int row = -1);

inline bool is_scalar(const ElementwiseInstruction& i, ScalarOp op) {
  return i.kind == ElementwiseInstruction::Kind::scalar && i.op == op;
}

/// The index of instruction `i` in a vector by instruction.
inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace lathe
