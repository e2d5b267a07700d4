#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "frontend/tensor.h"

/// How a function of the DSL becomes ops of the graph: its operands are checked, and what it builds stands at the
/// user's line. Every function of the DSL goes through here.
namespace lathe::detail {

/// Throws UserError at the user's line for an operand that is empty [tensor_empty], and for one of another graph than
/// the first [op_other_graph].
void check_operands(std::string_view op, const Where& at, std::initializer_list<const Tensor*> operands);
void check_operands(std::string_view op, const Where& at, std::span<const Tensor> operands);

using UnaryOp = ir::Value (*)(const ir::Value&);
using BinaryOp = ir::Value (*)(const ir::Value&, const ir::Value&);
using TernaryOp = ir::Value (*)(const ir::Value&, const ir::Value&, const ir::Value&);

/// The tensor that `make` builds from the operands' values, at the user's line. Errors name the function `op`.
template <class Make, class... Operands>
Tensor built(std::string_view op, const Where& at, const Make& make, const Tensor& first, const Operands&... others) {
  check_operands(op, at, {&first, &others...});
  const Line line(first, at);
  return Tensor(make(first.value(), others.value()...));
}

// Of a function with overloads, these choose one.
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
