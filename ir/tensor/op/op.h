#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/support/numbers/scalar_op.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/op/infer_context.h"
#include "ir/tensor/op/op_signature.h"

namespace lathe {
class HostTensor;
}

namespace lathe::ir {

class GraphBuilder;
class Value;

// ---------------------------------------------------------------------------------------------- meaning of an op

/// Each result element is `op` of the operands' elements, with NumPy broadcasting.
struct Elementwise {
  ScalarOp op;
  double (*reference)(std::span<const double>);  ///< in double precision, for the interpreter
};

/// Maps result elements of a view to input elements. Dim `i` of the input is indexed by `scale * out[dim] + offset`,
/// or by `offset` alone if `dim` is -1, plus the terms `more`, which only windows have (unfold). If `reshape` is set,
/// the element has the same row-major position in both shapes.
struct IndexMap {
  struct Term {
    int dim;
    std::int64_t scale;
    bool operator==(const Term&) const = default;
  };
  struct Component {
    int dim = -1;
    std::int64_t scale = 1;
    Dim offset = 0;
    std::vector<Term> more = {};  ///< empty if `dim` is -1

    /// Whether the index is that of one result dim, unchanged.
    bool is_plain() const { return dim >= 0 && scale == 1 && more.empty() && offset.is(0); }
    /// Calls f(dim, scale) for each term.
    template <class F>
    void each_term(F&& f) const {
      if (dim >= 0) f(dim, scale);
      for (const Term& term : more) f(term.dim, term.scale);
    }
  };
  std::vector<Component> components;  ///< one per input dim; empty for reshape
  bool reshape = false;
};
/// The result contains elements of its only operand, without computation.
struct View {
  IndexMap (*map)(const Graph&, const Node&);
};

/// Reduces the dims listed in attribute `dims` ([]: none); keeps them as size 1 if `keepdim`.
struct Reduce {
  ScalarOp combine;  ///< add, mul, min, max
  double identity;   ///< +-inf are the limits of an integer dtype
};

/// A product of two operands summed over shared labels: one label per dim, as in einsum, without repeats within an
/// operand. A label in both operands and the result is a batch label; in both but not the result, contracted; in one
/// operand and the result, free. Other kinds do not occur.
struct ContractionRoles {
  std::string lhs, rhs, out;       ///< one character per dim
  std::string batch() const;       ///< in the order of `out`
  std::string contracted() const;  ///< in the order of `lhs`
  std::string lhs_free() const;    ///< in the order of `out`
  std::string rhs_free() const;    ///< in the order of `out`
  /// Returns the product of the dims with these labels, unnamed; reads labels of both operands from the left one.
  Dim size_of(std::string_view labels, const Graph& graph, const Node& contraction) const;
};
struct Contraction {
  ContractionRoles (*roles)(const Node&);
};

/// Equivalent to its expansion into other ops. The expansion has exactly the type of the shape rule.
struct Composite {
  Value (*expand)(GraphBuilder&, const Node& node, std::span<const Value> operands);
};

/// Bound by the caller (input, parameter, state).
struct Argument {};

/// The closed set of ops with special kernels.
enum class CustomKind {
  constant,
  iota,
  random,
  gather,
  scatter_add,
  update_rows,
  cumsum,
  linear_recurrence,
  argsort,
  top_k,
  cholesky,
  solve_triangular,
  orthonormal_basis,
  eigenvectors,
  grouped_matmul,
  segment_outer,
  concat,
  pad,
  view_as_complex,
  view_as_real,
  random_at,
  collective  ///< communication between the processes of a mesh
};

/// Dim `operand_dim` of an operand corresponds to dim `result_dim` of the result: the op treats all parts of them
/// alike. If sizes differ, the result's is a multiple: the operand is one block of it, at a multiple of its own size.
struct DimPair {
  int operand, operand_dim, result_dim;
};
/// Each dim of the result is the same dim of every operand that has it, counted from the first.
struct ByOrder {};
/// Returns the corresponding dims; other dims of operands are needed whole.
using DimRule = std::vector<DimPair> (*)(const Graph&, const Node&);
/// No operand dim may be sharded.
struct Replicated {
  std::string_view why;
};
/// How the sharding pass (passes/shard) treats an op whose meaning does not determine it.
struct Sharding : std::variant<ByOrder, DimRule, Replicated> {
  using variant::variant;
  Sharding() = delete;
};

struct Custom {
  CustomKind kind;
  /// Operands and result are in their evaluation dtypes: floats as f64, integers as i64, complex as c128, boolean
  /// unchanged. Dims in the node's attributes are already bound to numbers.
  HostTensor (*reference)(const Node& node, std::span<const HostTensor* const> operands,
                          const std::vector<std::int64_t>& sizes);  ///< sizes: the result's shape
  Sharding sharding;
};

/// Runs the graph in its attribute `body` once per iteration: ir/ops/loop_parts.h.
struct Loop {};

using MeaningForm = std::variant<Elementwise, View, Reduce, Contraction, Composite, Argument, Custom, Loop>;
/// A closed variant without a default: a record without a meaning does not compile.
struct Meaning : MeaningForm {
  using variant::variant;
  Meaning() = delete;
};

// ------------------------------------------------------------------------------------------------------- gradients

/// The input of a gradient rule. Values belong to the graph under construction. For every operand with `needs`, the
/// rule calls `set` with d(loss)/d(operand), in the shape of the operand or of the (broadcast) result: the caller
/// sums over broadcast dims.
class GradientContext {
 public:
  GraphBuilder& builder;
  const Node& node;
  std::span<const Value> operands;
  const Value& result;
  const Value& grad;
  std::span<const bool> needed;
  std::vector<std::optional<Value>>& grads;

  bool needs(int i) const { return needed[i]; }
  const Value& operand(int i) const;
  void set(int i, const Value& gradient) const;
};
using GradientRule = void (*)(const GradientContext&);
struct FromExpansion {};
struct NotDifferentiable {
  std::string_view why;
};
/// The gradients of all results of a loop together are another loop: passes/autodiff/loop_gradient.h.
struct ThroughBody {};
using GradientForm = std::variant<GradientRule, FromExpansion, NotDifferentiable, ThroughBody>;
struct Gradient : GradientForm {
  using variant::variant;
  Gradient() = delete;
};

// --------------------------------------------------------------------------------------------------------- records

/// A mandatory field of a record.
template <class T>
struct Required {
  T value;
  template <std::convertible_to<T> U>
  constexpr Required(const U& v) : value(v) {}  // NOLINT(google-explicit-constructor)
  constexpr operator const T&() const { return value; }
};

class OwnedOp;

/// The complete definition of an op. To add an op, define a record and add a line to ir/ops/primitives/primitives.def
/// or composites.def. Emitters change only for a new ScalarOp or a special kernel. Programs define their own ops as
/// OwnedOp (ir/tensor/op/owned_op.h).
struct Op {
  Required<std::string_view> name;
  Required<std::string_view> doc;  ///< one line
  Required<Arity> arity;
  Required<std::span<const AttrSpec>> attrs;
  Required<std::span<const std::string_view>> labels;  ///< all labels that the shape rule can raise
  Required<TensorType (*)(const InferContext&)> infer;
  Meaning meaning;
  Required<MixedPrecision> precision;
  Gradient gradient;
  Required<std::vector<Sample> (*)()> samples;  ///< at least one, except for arguments
  const OwnedOp* owned = nullptr;               ///< points to itself for a user-defined op

  template <class T>
  const T* as() const {
    return std::get_if<T>(&static_cast<const MeaningForm&>(meaning));
  }
};

/// Returns the samples of a record, including user-defined ones.
std::vector<Sample> samples_of(const Op& op);

/// Returns the record of a Lathe op by name, or nullptr. Defined by ir/ops.
const Op* find_op(std::string_view name);
/// Returns all records of Lathe, sorted by name.
std::span<const Op* const> all_ops();

}  // namespace lathe::ir
