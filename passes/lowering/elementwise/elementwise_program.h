#pragma once

#include <map>
#include <vector>

#include "ir/machine/task_sizes.h"
#include "passes/fusion/fusion.h"

namespace lathe {

/// What a fused region computes at one point of its iteration domain: straight-line code in SSA form, whose loads,
/// indices and random counters are linear forms over the domain. Views are gone: they have become the forms.
struct ElementwiseInstruction {
  enum class Kind {
    constant,   ///< `value`
    index,      ///< the linear form itself, i64
    in_bounds,  ///< 0 <= form < size
    load,       ///< buffer[form]; 0 where the predicate args[0] is given and false
    checked,    ///< args[0], an index that must be in [0, size); predicate args[1] if given
    gather,     ///< buffer[form + clamp(args[0]) * stride], args[0] checked against size; predicate args[1] if given
    /// The sum of buffer[form + t * stride] over the positions t of one row of the scatter_add `node`: those that its
    /// storage (see scatter_positions) lists at size + args[0] up to size + args[1].
    row_sum,
    /// Uniform draw number `form`, or args[2] if given, of `stream`, keyed by args[0] = seed and args[1] = step.
    random,
    scalar,       ///< op of args
    reduce,       ///< op over the inner dims (or, in a columns region, the reduced dims) of args[0]
    column,       ///< op over the rows of args[0], see partial_columns.h; in an attention over outer dims
    accumulator,  ///< the product's result at this point
  };
  Kind kind = Kind::constant;
  DType dtype = f32;  ///< of the result; bf16 and f16 are held in f32, rounded after each op
  Number value = 0;   ///< one of the dtype's
  Linear form = {};
  ir::ValueId buffer = {};  ///< whose storage is read
  Dim stride = 0, size = 0;
  std::int64_t stream = 0;  ///< of a draw; the number of an accumulator
  ScalarOp op = ScalarOp::add;
  std::vector<int> args = {};
  ir::ValueId node = {};  ///< the node that it came from
  bool operator==(const ElementwiseInstruction& other) const;
};

/// A result that is kept: instruction `value` goes to the storage of `node` at `form`.
struct ElementwiseStore {
  int value;
  ir::ValueId node;
  Linear form;
};

struct ElementwiseProgram {
  Shape domain;
  std::vector<ElementwiseInstruction> code;
  std::vector<ElementwiseStore> stores;
  /// By instruction: a bit for each domain dim whose index it depends on.
  std::vector<std::uint64_t> depends;
  std::map<ir::ValueId, int> members;  ///< by node of the region: the instruction that computes it

  const ElementwiseInstruction& operator[](int id) const { return code[static_cast<std::size_t>(id)]; }
  int size() const { return static_cast<int>(code.size()); }
  /// Rough scalar operations of one point, for the size of chunks: a call of the C library, as f64 functions are,
  /// takes the time of some hundred in vectors.
  std::int64_t work(const TaskSizes& tasks) const;
  /// How many points lie along these dims of the domain.
  Dim points(const std::vector<int>& dims) const;
};

/// Where the list of positions begins in the storage of a scatter_add's positions: see scatter_positions.
Dim start_of_positions(const ir::Node& scatter);

/// The program of a region: its members in order, those that are kept stored.
ElementwiseProgram region_program(const ir::Graph& graph, const FusionPlan& plan, const Region& region);

/// The program of one operand (of a contraction or scatter_add) over its own dims, permuted or spread over `domain`:
/// dim i of the operand runs along domain dim dims[i]. Gives the instruction that holds the element.
struct OperandProgram {
  ElementwiseProgram program;
  int result;
};
OperandProgram operand_program(const ir::Graph& graph, const FusionPlan& plan, ir::ValueId operand,
                               const std::vector<int>& dims, const Shape& domain);

inline bool is_scalar(const ElementwiseInstruction& i, ScalarOp op) {
  return i.kind == ElementwiseInstruction::Kind::scalar && i.op == op;
}

/// The index of instruction `i` in a vector by instruction.
inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace lathe
