#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/tensor.h"
#include "ir/support/tensors/host_tensor.h"
#include "ir/tensor/op/infer_context.h"
#include "ir/tensor/op/op_ref.h"
#include "ir/tensor/op/op_signature.h"

/// User-defined ops: docs/custom-ops.md.
namespace lathe {

/// The inputs of a backward.
struct BackwardContext {
  std::span<const Tensor> operands;
  const Tensor& result;
  const Tensor& grad;  ///< d(loss)/d(result)
  const ir::Attributes& attrs;
};

/// The definition of a user-defined op.
struct CustomOpRecord {
  std::string name;  ///< must contain a dot, unlike the names of built-in ops: "my.swish"
  std::string doc = "an op of the program";
  ir::Arity arity = {1, 1};
  std::vector<ir::AttrSpec> attrs = {};  ///< the strings are copied
  std::vector<std::string> labels = {};  ///< all constraint labels that `infer` can raise
  /// Infers the result type and raises the op's own errors. Default: the type of the forward.
  std::function<ir::TensorType(const ir::InferContext&)> infer = {};
  /// Builds the op's semantics from other ops, using only the operands and the attributes. It runs when an op is
  /// built, and again when it is differentiated, interpreted or compiled.
  std::function<Tensor(std::span<const Tensor> operands, const ir::Attributes& attrs)> forward = {};
  /// Returns d(loss)/d(operand) for each operand, of the operand's dtype and of its shape or the result's
  /// [custom_gradient]; an empty Tensor for no gradient. Default: the forward is differentiated.
  std::function<std::vector<Tensor>(const BackwardContext&)> backward = {};
  std::string not_differentiable = {};  ///< why the op has no gradient, if it has none
  ir::MixedPrecision precision = ir::MixedPrecision::expansion;
  /// Computes the op with plain loops; check_custom_op() compares the forward with it. Floats are f64, integers i64.
  std::function<HostTensor(std::span<const HostTensor> operands, const ir::Attributes& attrs)> reference = {};
  std::vector<ir::Sample> samples = {};  ///< small valid uses, for check_custom_op()
};

/// A user-defined op. Copies are the same op. Graphs, and op sets for reading text, keep it alive. Dumps and errors
/// show its name, with the type and the line of its use:
///   %2 = my.swish %x, %beta : f32[n, 64]  loc("model.cpp":14)
class CustomOp {
 public:
  /// Throws UserError [op_name] for a name without a dot, [op_forward] if the forward is missing.
  explicit CustomOp(CustomOpRecord record, Where at = Where::current());

  /// Adds the op at the caller's line. Throws UserError like any op ([op_arity], [op_attribute], the labels of the
  /// rule); the errors of the forward's ops; [custom_type] if the forward's type differs from that of the rule;
  /// [custom_random] if it draws random numbers; [op_name] if the graph has another op of that name.
  Tensor operator()(const Tensor& a, Where at = Where::current()) const;
  Tensor operator()(const Tensor& a, const Tensor& b, Where at = Where::current()) const;
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c, Where at = Where::current()) const;
  Tensor operator()(std::initializer_list<Tensor> operands, const ir::Attributes& attrs = {},
                    Where at = Where::current()) const;
  Tensor operator()(const std::vector<Tensor>& operands, const ir::Attributes& attrs = {},
                    Where at = Where::current()) const;

  const CustomOpRecord& definition() const { return *definition_; }
  const ir::Op& record() const { return *op_; }
  operator ir::OpRef() const { return op_; }  // NOLINT(google-explicit-constructor)
  /// Returns the op's description in Markdown, in the format of docs/ops.md.
  std::string document() const;

 private:
  Tensor call(std::span<const Tensor> operands, const ir::Attributes& attrs, const Where& at) const;

  std::shared_ptr<const CustomOpRecord> definition_;
  ir::OpRef op_;
};

namespace detail {

template <std::size_t>
using TensorAt = const Tensor&;

template <class F, std::size_t... i>
constexpr bool takes_tensors(std::index_sequence<i...>) {
  return std::is_invocable_r_v<Tensor, const F&, TensorAt<i>...>;
}

/// Number of tensors that a function accepts, up to 8; 0 if it has other parameters.
template <class F, std::size_t n = 8>
constexpr std::size_t tensors_taken() {
  if constexpr (n == 0)
    return 0;
  else if constexpr (takes_tensors<F>(std::make_index_sequence<n>()))
    return n;
  else
    return tensors_taken<F, n - 1>();
}

template <class F, std::size_t... i>
Tensor apply_to(const F& f, std::span<const Tensor> operands, std::index_sequence<i...>) {
  return f(operands[i]...);
}

}  // namespace detail

/// The backward of an op without attributes. Takes the operands, the result and d(loss)/d(result); returns
/// d(loss)/d(operand) for each operand.
using SimpleBackward =
    std::function<std::vector<Tensor>(std::span<const Tensor> operands, const Tensor& result, const Tensor& grad)>;

/// Creates an op without attributes from a function of 1 to 8 tensors. Without `backward`, the forward's ops are
/// differentiated.
///
///   const CustomOp swish = custom_op(
///       "my.swish", [](const Tensor& x, const Tensor& beta) { return x * sigmoid(beta * x); });
///   Tensor y = swish(x, beta);
template <class Forward>
  requires(detail::tensors_taken<Forward>() > 0)
CustomOp custom_op(std::string_view name, Forward forward, SimpleBackward backward = {},
                   Where at = Where::current()) {
  constexpr std::size_t n = detail::tensors_taken<Forward>();
  CustomOpRecord record;
  record.name = name;
  record.arity = {static_cast<int>(n), static_cast<int>(n)};
  record.forward = [forward = std::move(forward)](std::span<const Tensor> operands, const ir::Attributes&) {
    return detail::apply_to(forward, operands, std::make_index_sequence<n>());
  };
  if (backward)
    record.backward = [backward = std::move(backward)](const BackwardContext& c) {
      return backward(c.operands, c.result, c.grad);
    };
  return CustomOp(std::move(record), at);
}

}  // namespace lathe
