#include <fmt/core.h>

#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/products/product_of.h"

namespace lathe::pt2 {

namespace {

Results linear_op(const OpCall& call) {
  const Tensor x = call.tensor(0), weight = call.tensor(1);
  if (x.rank() == 1) {
    const Tensor y = matmul(weight, x);
    return {call.has(2) ? y + call.tensor(2) : y};
  }
  return {call.has(2) ? linear(x, weight, call.tensor(2)) : linear(x, weight)};
}

Results matmul_op(const OpCall& call) { return {product_of(call.tensor(0), call.tensor(1))}; }

/// Returns the source [.., n, k] of a tensor [p, n, k] whose first dim joins those in front of the source.
std::optional<Tensor> split_batches(const Tensor& x) {
  if (op_name(x) != "reshape") return std::nullopt;
  const Tensor source = operand_of(x);
  const bool is_joined = source.rank() > 3 && source.size(-1) == x.size(-1) && source.size(-2) == x.size(-2);
  return is_joined ? std::optional(source) : std::nullopt;
}

/// Splits the first dim of a tensor [p, n, k] into the batches of another one, [.., n, k].
Tensor with_batches(const Tensor& x, const Shape& like) {
  Shape shape;
  for (int i = 0; i + 2 < like.rank(); ++i) shape.push_back(like[i]);
  shape.push_back(x.size(1));
  shape.push_back(x.size(2));
  return x.reshape(shape);
}

bool have_same_batches(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i + 2 < a.rank(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

/// PyTorch decomposes products of more dims to this op with reshapes around it. The product of the original tensors
/// is the same, and keeps batches and heads apart, so that attention is fused.
Results batched_product(const OpCall& call) {
  const Tensor a = call.tensor(0), b = call.tensor(1);
  std::optional<Tensor> x = split_batches(a), y = split_batches(b);
  if (!x && !y) return {product_of(a, b)};
  if (!x) x = with_batches(a, y->shape());
  if (!y) y = with_batches(b, x->shape());
  if (!have_same_batches(x->shape(), y->shape())) return {product_of(a, b)};
  return {product_of(*x, *y).reshape({a.size(0), a.size(1), b.size(2)})};
}

/// Multiplies segments of rows by matrices of their own, such as those of experts: rows [n, k], matrices [g, k, m],
/// and the end of each segment.
Results grouped_product(const OpCall& call) {
  const Tensor rows = call.tensor(0), matrices = call.tensor(1);
  if (rows.rank() != 2 || matrices.rank() != 3 || !call.has(2))
    call.fail(fmt::format("the operands have ranks {} and {}", rows.rank(), matrices.rank()), "import_unsupported",
              "segments of rows [n, k] are multiplied by matrices [g, k, m], with the ends of the segments");
  const auto groups = matrices.size(0).value();
  if (!groups) call.fail("the number of matrices is not known", "import_size");
  std::vector<Tensor> weights;
  for (std::int64_t i = 0; i < *groups; ++i) weights.push_back(matrices.select(0, i).transpose(0, 1));
  const Tensor ends = call.tensor(2).to(i64);
  const Tensor y = grouped_matmul(rows, concat({call.graph().zeros({1}, i64), ends}, 0), weights);
  return {y};
}

}  // namespace

std::span<const OpRecord> aten_product_ops() {
  static constexpr OpRecord records[] = {
      aten("linear", "input weight bias", "", linear_op),
      aten("matmul", "self other", "", matmul_op),
      aten("mm", "self mat2", "", matmul_op),
      aten("bmm", "self mat2", "", batched_product),
      aten("mv", "self vec", "", matmul_op),
      aten("dot", "self tensor", "", matmul_op),
      aten("_grouped_mm", "self mat2 offs", "", grouped_product),
  };
  return records;
}

std::span<const OpRecord> transformers_ops() {
  static constexpr OpRecord records[] = {aten("grouped_mm_fallback", "input weight offs", "", grouped_product)};
  return records;
}

}  // namespace lathe::pt2
