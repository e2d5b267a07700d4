#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "frontend/tensor.h"

/// Shared code of the DSL functions: checks the operands, then builds the op at the user's line. Every DSL function
/// uses it.
namespace lathe::detail {

/// Throws UserError at the user's line for an empty operand [tensor_empty], or for an operand of another graph than
/// the first [op_other_graph].
void check_operands(std::string_view op, const Where& at, std::initializer_list<const Tensor*> operands);
void check_operands(std::string_view op, const Where& at, std::span<const Tensor> operands);

/// Checks the operands of a function that is composed of other DSL functions. While alive, all ops are built at the
/// line of the caller.
struct Composed : CallSite {
  Composed(std::string_view op, const Where& at, std::initializer_list<const Tensor*> operands)
      : CallSite((check_operands(op, at, operands), **operands.begin()), at) {}
};

using UnaryOp = ir::Value (*)(const ir::Value&);
using BinaryOp = ir::Value (*)(const ir::Value&, const ir::Value&);
using TernaryOp = ir::Value (*)(const ir::Value&, const ir::Value&, const ir::Value&);

/// Returns the tensor that `make` builds from the operands' values, at the user's line. Errors name the function
/// `op`.
template <class Make, class... Operands>
Tensor built(std::string_view op, const Where& at, const Make& make, const Tensor& first, const Operands&... others) {
  check_operands(op, at, {&first, &others...});
  const Line line(first, at);
  return Tensor(make(first.value(), others.value()...));
}

// These pick one overload of an overloaded function.
inline Tensor built(std::string_view op, const Where& at, UnaryOp make, const Tensor& a) {
  return built<UnaryOp>(op, at, make, a);
}
inline Tensor built(std::string_view op, const Where& at, BinaryOp make, const Tensor& a, const Tensor& b) {
  return built<BinaryOp>(op, at, make, a, b);
}
inline Tensor built(std::string_view op, const Where& at, TernaryOp make, const Tensor& a, const Tensor& b,
                    const Tensor& c) {
  return built<TernaryOp>(op, at, make, a, b, c);
}

}  // namespace lathe::detail
