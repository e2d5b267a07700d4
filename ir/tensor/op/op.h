#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/support/error.h"
#include "ir/support/scalar_op.h"
#include "ir/tensor/graph.h"

namespace lathe {
class HostTensor;
}

namespace lathe::ir {

class GraphBuilder;
class Value;

/// What a shape rule sees, and how it speaks to the user.
class InferContext {
 public:
  InferContext(const Op& op, const Graph& graph, std::span<const ValueId> operands, const Attributes& attrs,
               const Location& loc, std::vector<DimCheck>& checks)
      : op_(op), graph_(graph), operands_(operands), attrs_(attrs), loc_(loc), checks_(checks) {}

  int arity() const { return static_cast<int>(operands_.size()); }
  const TensorType& operand(int i) const { return graph_[operands_[static_cast<std::size_t>(i)]].type; }
  const Node& operand_node(int i) const { return graph_[operands_[static_cast<std::size_t>(i)]]; }
  ValueId operand_id(int i) const { return operands_[static_cast<std::size_t>(i)]; }
  const Graph& graph() const { return graph_; }
  template <class T>
  const T& attr(std::string_view name) const {
    return attrs_.get<T>(name);
  }
  const Attributes& attrs() const { return attrs_; }
  const Location& location() const { return loc_; }
  const Op& op() const { return op_; }

  /// Throws a UserError at the user's line: "<loc>: <op>: <message>  [label]\n  hint".
  [[noreturn]] void fail(std::string_view label, std::string_view message, std::string_view hint = {}) const;
  void require(bool condition, std::string_view label, std::string_view message, std::string_view hint = {}) const {
    if (!condition) fail(label, message, hint);
  }
  /// Fails when a and b are known to differ; records a run-time check when only the bound dims can tell.
  void require_equal(const Dim& a, const Dim& b, std::string_view label, std::string_view message,
                     std::string_view hint = {}) const;
  /// Likewise for a <= b.
  void require_at_most(const Dim& a, const Dim& b, std::string_view label, std::string_view message,
                       std::string_view hint = {}) const;
  /// Records a run-time check that another rule has asked for.
  void add_check(DimCheck check) const { checks_.push_back(std::move(check)); }
  /// A dim attribute or position counted from the end when negative: -1 is the last. Fails with [dim_range].
  int axis(std::int64_t axis, int rank) const;

 private:
  const Op& op_;
  const Graph& graph_;
  std::span<const ValueId> operands_;
  const Attributes& attrs_;
  const Location& loc_;
  std::vector<DimCheck>& checks_;
};

// ---------------------------------------------------------------------------------------------- what an op means

/// Each element of the result is `op` of the operands' elements, broadcast by NumPy's rule.
struct Elementwise {
  ScalarOp op;
  double (*reference)(std::span<const double>);  ///< plain double precision, for the interpreter
};

/// Where each element of a view comes from. Dim `i` of the input is indexed by
/// `scale * out[dim] + offset`, or by `offset` alone where `dim` is -1; or, when `reshape` is set, the element has
/// the same row-major position in both shapes.
struct IndexMap {
  struct Component {
    int dim = -1;
    std::int64_t scale = 1;
    Dim offset = 0;
  };
  std::vector<Component> components;  ///< one for each input dim; empty when reshape
  bool reshape = false;
};
/// The result shows elements of its one operand, none computed.
struct View {
  IndexMap (*map)(const Graph&, const Node&);
};

/// Folds the dims listed in attribute `dims` ([] for none), kept as size 1 when `keepdim`.
struct Reduce {
  ScalarOp combine;  ///< add, mul, min, max
  double identity;   ///< +-inf stand for the ends of an integer's range
};

/// A product of two operands summed over shared labels: one label a dim, as in einsum, none repeated in an operand.
/// A label in both operands and the result is a batch label; in both but not the result, contracted; in one operand
/// and the result, free. No other kinds occur.
struct ContractionRoles {
  std::string lhs, rhs, out;       ///< one character a dim
  std::string batch() const;       ///< in the order of `out`
  std::string contracted() const;  ///< in the order of `lhs`
  std::string lhs_free() const;    ///< in the order of `out`
  std::string rhs_free() const;    ///< in the order of `out`
  /// The product of the dims with these labels, without names; those of both operands are read off the left one.
  Dim size_of(std::string_view labels, const Graph& graph, const Node& contraction) const;
};
struct Contraction {
  ContractionRoles (*roles)(const Node&);
};

/// Means what its expansion into other ops means. The expansion has exactly the type that the shape rule gave.
struct Composite {
  Value (*expand)(GraphBuilder&, const Node& node, std::span<const Value> operands);
};

/// Bound by the caller (input, parameter, state).
struct Argument {};

/// What the closed set of special kernels computes.
enum class CustomKind {
  constant,
  iota,
  random,
  gather,
  scatter_add,
  update_rows,
  cumsum,
  argsort,
  top_k,
  grouped_matmul,
  segment_outer,
  concat,
  pad,
  view_as_complex,
  view_as_real,
  random_at,
  collective  ///< an exchange between the processes of a mesh
};

/// Dim `operand_dim` of an operand is dim `result_dim` of the result: the op does the same to every part of them. Of
/// two sizes the result's may be a multiple: the operand then is one block of it, at a multiple of its own size.
struct DimPair {
  int operand, operand_dim, result_dim;
};
/// Each dim of the result is that dim of every operand that has it, counted from the first.
struct ByOrder {};
/// Which dims correspond; the others of operands are looked at as a whole.
using DimRule = std::vector<DimPair> (*)(const Graph&, const Node&);
/// No dim of an operand may be split.
struct Replicated {
  std::string_view why;
};
/// How the pass that splits a graph over processes (passes/shard) treats an op whose meaning does not tell.
struct Sharding : std::variant<ByOrder, DimRule, Replicated> {
  using variant::variant;
  Sharding() = delete;
};

struct Custom {
  CustomKind kind;
  /// Operands and result are in their evaluation dtypes: floats as f64, integers as i64, complex as c128, boolean as
  /// it is. Dims in the node's attributes are numbers: the caller has bound them.
  HostTensor (*reference)(const Node& node, std::span<const HostTensor* const> operands,
                          const std::vector<std::int64_t>& sizes);  ///< sizes: the result's shape
  Sharding sharding;
};

/// A closed variant without a default, so that a record that leaves it out does not compile.
struct Meaning : std::variant<Elementwise, View, Reduce, Contraction, Composite, Argument, Custom> {
  using variant::variant;
  Meaning() = delete;
};

// ------------------------------------------------------------------------------------------------------- gradients

/// What a gradient rule sees. Values live in the graph under construction; for every operand that `needs` says
/// matters the rule calls `set` with d(loss)/d(operand), in the shape of the operand or of the (broadcast) result:
/// the caller sums broadcast dims away.
class GradientContext {
 public:
  GraphBuilder& builder;
  const Node& node;
  std::span<const Value> operands;
  const Value& result;
  const Value& grad;
  std::span<const bool> needed;
  std::vector<std::optional<Value>>& grads;

  bool needs(int i) const { return needed[static_cast<std::size_t>(i)]; }
  const Value& operand(int i) const;
  void set(int i, const Value& gradient) const;
};
using GradientRule = void (*)(const GradientContext&);
struct FromExpansion {};
struct NotDifferentiable {
  std::string_view why;
};
struct Gradient : std::variant<GradientRule, FromExpansion, NotDifferentiable> {
  using variant::variant;
  Gradient() = delete;
};

// ------------------------------------------------------------------------------------------------- mixed precision

/// In which dtype mixed precision (passes/transforms/mixed_precision.h) computes an op of f32 values. The ops of
/// Lathe have the class that torch.autocast gives them.
enum class MixedPrecision : std::uint8_t {
  low_precision,  ///< bf16 or f16: products, which have the speed of it and accumulate in f32
  f32,            ///< f32: sums, norms, softmax, losses, and functions that overflow or magnify rounding
  follow,         ///< what its operands are: low precision where all of them are, f32 where one of them is
  expansion,  ///< as the ops of its expansion: f32 where one of them is, else low precision where one is, else follow
};

// --------------------------------------------------------------------------------------------------------- records

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool required;
  std::variant<std::monostate, bool, std::int64_t, double, std::string_view> fallback;  ///< when not required
  std::string_view doc;
};

/// One operand of a sample: its type, and the range its random values are drawn from.
struct SampleOperand {
  std::vector<std::int64_t> sizes;
  DType dtype = f64;
  double low = -2, high = 2;
};
/// A small valid use of an op, for the all-ops test and the fuzzer.
struct Sample {
  std::vector<SampleOperand> operands;
  Attributes attrs;
};

/// A piece of a record that must be given.
template <class T>
struct Required {
  T value;
  template <std::convertible_to<T> U>
  constexpr Required(const U& v) : value(v) {}  // NOLINT(google-explicit-constructor)
  constexpr operator const T&() const { return value; }
};

struct Arity {
  int min, max;  ///< max -1: any number
};

class OwnedOp;

/// Everything that Lathe knows of an op. A new op is one of these and a line in ir/ops/primitives/primitives.def or
/// composites.def; no emitter is touched but for a new ScalarOp or a kernel of its own.
/// A program makes records of its own as OwnedOp (ir/tensor/op/owned_op.h).
struct Op {
  Required<std::string_view> name;
  Required<std::string_view> doc;  ///< one line
  Required<Arity> arity;
  Required<std::span<const AttrSpec>> attrs;
  Required<std::span<const std::string_view>> labels;  ///< every constraint label that the shape rule can raise
  Required<TensorType (*)(const InferContext&)> infer;
  Meaning meaning;
  Required<MixedPrecision> precision;
  Gradient gradient;
  Required<std::vector<Sample> (*)()> samples;  ///< at least one, for everything but arguments
  const OwnedOp* owned = nullptr;               ///< itself, where a program made it

  template <class T>
  const T* as() const {
    using Any = std::variant<Elementwise, View, Reduce, Contraction, Composite, Argument, Custom>;
    return std::get_if<T>(&static_cast<const Any&>(meaning));
  }
};

/// The samples of a record, of a program's own too.
std::vector<Sample> samples_of(const Op& op);

/// The record of an op of Lathe by its name; nullptr where there is none. Defined by ir/ops.
const Op* find_op(std::string_view name);
/// Every record of Lathe, sorted by name.
std::span<const Op* const> all_ops();

}  // namespace lathe::ir
