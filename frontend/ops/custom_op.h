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
#include "ir/tensor/op/op.h"
#include "ir/tensor/op/op_ref.h"

/// Ops of a program's own: docs/custom-ops.md.
namespace lathe {

/// What a backward is made from.
struct BackwardContext {
  std::span<const Tensor> operands;
  const Tensor& result;
  const Tensor& grad;  ///< d(loss)/d(result)
  const ir::Attributes& attrs;
};

/// Everything that Lathe is told of a program's own op.
struct CustomOpRecord {
  std::string name;  ///< with a dot, as no op of Lathe has: "my.swish"
  std::string doc = "an op of the program";
  ir::Arity arity = {1, 1};
  std::vector<ir::AttrSpec> attrs = {};  ///< the texts are copied
  std::vector<std::string> labels = {};  ///< every constraint label that `infer` can raise
  /// The rule of the result's type, with errors of its own. Where it is left out, the type is that of the forward.
  std::function<ir::TensorType(const ir::InferContext&)> infer = {};
  /// What the op means, in other ops: of the operands and the attributes alone. It runs when an op is built, and
  /// again when it is differentiated, interpreted or compiled.
  std::function<Tensor(std::span<const Tensor> operands, const ir::Attributes& attrs)> forward = {};
  /// d(loss)/d(operand) for each operand, of its dtype and of its shape or the result's [custom_gradient]; an empty
  /// Tensor where there is none. Where it is left out, the forward is differentiated.
  std::function<std::vector<Tensor>(const BackwardContext&)> backward = {};
  std::string not_differentiable = {};  ///< why it has no gradient, for an op that has none
  ir::MixedPrecision precision = ir::MixedPrecision::expansion;
  /// The same by plain loops, which check_custom_op() compares the forward with: floats are f64, integers i64.
  std::function<HostTensor(std::span<const HostTensor> operands, const ir::Attributes& attrs)> reference = {};
  std::vector<ir::Sample> samples = {};  ///< small valid uses, for check_custom_op()
};

/// An op of the program. Copies are the same op. Graphs, and sets of ops that texts are read with, keep what it needs
/// alive. In dumps and errors it stands under its name, with the type and the line of its use:
///   %2 = my.swish %x, %beta : f32[n, 64]  loc("model.cpp":14)
class CustomOp {
 public:
  /// Throws UserError [op_name] for a name without a dot, [op_forward] where the forward is missing.
  explicit CustomOp(CustomOpRecord record, Where at = Where::current());

  /// Adds the op at the caller's line. Throws UserError as any op does ([op_arity], [op_attribute], the rule's
  /// labels); what the forward's ops refuse; and [custom_type] where the forward has another type than the rule
  /// gives, [custom_random] where it draws random numbers, [op_name] where the graph has another op of the name.
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
  /// The op as docs/ops.md describes those of Lathe, in Markdown.
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

/// How many tensors a function takes, up to 8; 0 where it takes other things.
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

/// The backward of an op without attributes: from operands, result and d(loss)/d(result) to d(loss)/d(operand) for
/// each.
using SimpleBackward =
    std::function<std::vector<Tensor>(std::span<const Tensor> operands, const Tensor& result, const Tensor& grad)>;

/// An op without attributes, from a function of one to 8 tensors. Without `backward` it is differentiated by what
/// the forward is made of.
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
