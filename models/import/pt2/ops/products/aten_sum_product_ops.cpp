#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "frontend/ops/derived_ops.h"
#include "models/import/ops/elimination.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/products/product_of.h"

/// Products that are added to a tensor, or that sum over dims which their arguments name.
namespace lathe::pt2 {

namespace {

Tensor scaled_by(const Tensor& x, double factor) { return factor == 1 ? x : x * factor; }

/// beta * self + alpha * product
Results added(const OpCall& call, const Tensor& product) {
  const double alpha = real_argument(call, "alpha", 1), beta = real_argument(call, "beta", 1);
  const Tensor scaled = scaled_by(product, alpha);
  return {beta == 0 ? scaled : scaled_by(call.tensor(0), beta) + scaled};
}
Results added_product(const OpCall& call) { return added(call, product_of(call.tensor(1), call.tensor(2))); }
Results added_batches(const OpCall& call) { return added(call, product_of(call.tensor(1), call.tensor(2)).sum(0)); }
Results added_outer(const OpCall& call) {
  return added(call, call.tensor(1).unsqueeze(1) * call.tensor(2).unsqueeze(0));
}

Results einsum_op(const OpCall& call) {
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  const std::vector<Tensor> tensors = call.tensors();
  if (std::ranges::none_of(tensors, [](const Tensor& x) { return is_complex(x.dtype()); }))
    return {einsum(equation, tensors)};
  const auto product = [&](const Tensor& a, const Tensor& b) { return einsum(equation, {a, b}); };
  if (tensors.size() == 2) return {complex_product(tensors[0], tensors[1], product)};
  if (tensors.size() > 2) call.fail("products of more than two complex tensors are not supported");
  const auto moved = [&](const Tensor& part) { return einsum(equation, {part}); };
  return {complex_of(each_part(signal_of(tensors.at(0)), moved))};
}

Results outer_op(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  return {elementwise_product(operand_as(call, 0, dtype).unsqueeze(1), operand_as(call, 1, dtype).unsqueeze(0))};
}

/// The sum over the last dims of both: [.., k], [.., k] -> [.., ..].
Results inner_op(const OpCall& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  if (a.rank() == 0 || b.rank() == 0) return {elementwise_product(a, b)};
  Shape shape;
  for (int i = 0; i + 1 < a.rank(); ++i) shape.push_back(a.size(i));
  for (int i = 0; i + 1 < b.rank(); ++i) shape.push_back(b.size(i));
  const Dim size = a.size(-1).unnamed();
  const auto rows = [&](const Tensor& x) { return x.reshape({product(x.shape(), 0, x.rank() - 1), size}); };
  return {product_of(rows(a), rows(b).transpose(0, 1)).reshape(shape)};
}

Results vdot_op(const OpCall& call) {
  const Tensor a = call.tensor(0);
  return {product_of(is_complex(a.dtype()) ? conj(a) : a, call.tensor(1))};
}

Results vector_dot(const OpCall& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  const Tensor terms = (is_complex(a.dtype()) ? conj(a) : a) * b;
  return {terms.sum(axis_argument(call, terms.rank(), std::int64_t{-1}))};
}

/// The blocks of a matrix: each element of a times b. Missing dims in front have the size 1.
Results kronecker_product(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  Tensor a = operand_as(call, 0, dtype), b = operand_as(call, 1, dtype);
  while (a.rank() < b.rank()) a = a.unsqueeze(0);
  while (b.rank() < a.rank()) b = b.unsqueeze(0);
  Shape shape;
  for (int i = 0; i < a.rank(); ++i) shape.push_back(a.size(i).unnamed() * b.size(i).unnamed());
  for (int i = shape.rank(); i > 0; --i) {
    a = a.unsqueeze(i);
    b = b.unsqueeze(i - 1);
  }
  return {elementwise_product(a, b).reshape(shape)};
}

/// Returns all axes but the given ones.
Ints others(const Ints& axes, int rank) {
  Ints rest;
  for (int i = 0; i < rank; ++i)
    if (std::ranges::find(axes, i) == axes.end()) rest.push_back(i);
  return rest;
}

/// The sum over pairs of dims of both tensors.
Results tensor_dot(const OpCall& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  const Ints in_a = axes_from_front(call, call.integers("dims_self"), a.rank()),
             in_b = axes_from_front(call, call.integers("dims_other"), b.rank());
  if (in_a.size() != in_b.size()) call.fail("dims_self and dims_other differ in number", "import_attribute");
  const Ints rest_a = others(in_a, a.rank()), rest_b = others(in_b, b.rank());
  Ints order_a = rest_a, order_b = in_b;
  order_a.insert(order_a.end(), in_a.begin(), in_a.end());
  order_b.insert(order_b.end(), rest_b.begin(), rest_b.end());
  Shape shape;
  Dim rows = 1, columns = 1, inner = 1;
  for (const std::int64_t i : rest_a) shape.push_back(a.size(i)), rows = rows * a.size(i).unnamed();
  for (const std::int64_t i : rest_b) shape.push_back(b.size(i)), columns = columns * b.size(i).unnamed();
  for (const std::int64_t i : in_a) inner = inner * a.size(i).unnamed();
  const Tensor left = a.permute(order_a).reshape({rows, inner}), right = b.permute(order_b).reshape({inner, columns});
  return {product_of(left, right).reshape(shape)};
}

/// The product of matrices; the first and the last one may be vectors. It begins at the end if that is a vector.
Results chain(const OpCall& call) {
  const std::vector<Tensor> parts = call.tensors();
  if (parts.empty()) call.fail("there are no matrices", "import_operand");
  const bool from_end = parts.size() > 1 && parts.back().rank() == 1;
  Tensor result = from_end ? parts.back() : parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i)
    result = from_end ? product_of(parts[parts.size() - 1 - i], result) : product_of(result, parts[i]);
  return {result};
}

/// Squares the matrix, or its inverse for a negative exponent, for each bit of the exponent.
Results matrix_power(const OpCall& call) {
  const Tensor x = call.tensor(0);
  std::int64_t n = call.integer("n");
  if (x.rank() < 2) call.fail("the operand is no matrix", "import_operand");
  const Tensor one = call.graph().eye(x.size(-1), x.dtype()).expand(x.shape());
  if (n == 0) return {one};
  Tensor power = n < 0 ? importing::eliminate(call, x, one).solution : x, result;
  n = std::abs(n);
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) result = result.is_empty() ? power : product_of(result, power);
    if (n > 1) power = product_of(power, power);
  }
  return {result};
}

/// The vector product along a dim of 3 elements.
Tensor cross_along(const Tensor& a, const Tensor& b, int axis) {
  const auto cross = [&](const Tensor& x, const Tensor& y) {
    return x.roll(-1, axis) * y.roll(-2, axis) - x.roll(-2, axis) * y.roll(-1, axis);
  };
  return widened(cross, a, b);
}
Results cross_op(const OpCall& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  if (call.has("dim")) return {cross_along(a, b, axis_argument(call, a.rank()))};
  for (int i = 0; i < a.rank(); ++i)
    if (a.size(i).is(3)) return {cross_along(a, b, i)};
  call.fail("no dim has 3 elements", "import_operand");
}
Results linalg_cross(const OpCall& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  if (a.rank() != b.rank()) call.fail("the operands have different ranks", "import_operand");
  return {cross_along(a, b, axis_argument(call, a.rank(), std::int64_t{-1}))};
}

/// x[b, i] w[o, i, k] y[b, k] + bias[o]
Results bilinear_op(const OpCall& call) {
  const Tensor x = call.tensor(0), y = call.tensor(1);
  Shape shape = x.shape();
  shape.set(x.rank() - 1, call.operand(2).shape()[0]);
  const auto rows = [](const Tensor& t) { return t.reshape({product(t.shape(), 0, t.rank() - 1), t.size(-1)}); };
  const Tensor result = einsum("bi,oik,bk->bo", {rows(x), call.tensor(2), rows(y)}).reshape(shape);
  return {call.has(3) ? result + call.tensor(3) : result};
}

}  // namespace

std::span<const OpRecord> aten_sum_product_ops() {
  static constexpr OpRecord records[] = {
      aten("addmm", "self mat1 mat2", "alpha beta", added_product),
      aten("addmv", "self mat vec", "alpha beta", added_product),
      aten("baddbmm", "self batch1 batch2", "alpha beta", added_product),
      aten("addbmm", "self batch1 batch2", "alpha beta", added_batches),
      aten("addr", "self vec1 vec2", "alpha beta", added_outer),
      aten("einsum", "tensors", "equation", einsum_op),
      aten("outer", "self vec2", "", outer_op),
      aten("inner", "self other", "", inner_op),
      aten("vdot", "self other", "", vdot_op),
      aten("linalg_vecdot", "x y", "dim", vector_dot),
      aten("kron", "self other", "", kronecker_product),
      aten("tensordot", "self other", "dims_self dims_other", tensor_dot),
      aten("linalg_multi_dot", "tensors", "", chain),
      aten("chain_matmul", "matrices", "", chain),
      aten("linalg_matrix_power", "self", "n", matrix_power),
      aten("cross", "self other", "dim", cross_op),
      aten("linalg_cross", "self other", "dim", linalg_cross),
      aten("bilinear", "input1 input2 weight bias", "", bilinear_op),
  };
  return records;
}

}  // namespace lathe::pt2
