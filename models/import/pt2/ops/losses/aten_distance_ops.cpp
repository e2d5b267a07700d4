#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/import/ops/elementwise_functions.h"
#include "models/import/ops/vector_norms.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/losses/loss_reduction.h"

/// Distances of vectors, norms of matrices, and losses of distances.
namespace lathe::pt2 {

namespace {

using importing::vector_norm;

/// The product of both vectors, each divided by its norm, which is at least eps.
Results cosine_similarity(const OpCall& call) {
  const DType dtype = float_of(promoted(call, {0, 1}));
  const double eps = real_argument(call, "eps", 1e-8);
  const Tensor a = operand_as(call, 0, dtype), b = operand_as(call, 1, dtype), product = a * b;
  const int axis = axis_argument(call, product.rank(), std::int64_t{1});
  const auto direction = [&](const Tensor& x) {
    const Tensor whole = x.expand(product.shape());
    return whole / maximum(whole.norm(axis, true), eps);
  };
  return {(direction(a) * direction(b)).sum(axis)};
}

/// The norm of a - b + eps over the last dim.
Tensor distance_of(const Tensor& a, const Tensor& b, double order, double eps, bool keeps_dims) {
  return vector_norm(a - b + eps, order, Axes(-1), keeps_dims);
}
Results pairwise_distance(const OpCall& call) {
  return {distance_of(call.tensor(0), call.tensor(1), real_argument(call, "p", 2), real_argument(call, "eps", 1e-6),
                      call.flag("keepdim", false))};
}

/// The distance of each row of a [.., n, d] from each row of b [.., m, d].
Results cdist(const OpCall& call) {
  call.ignore({"compute_mode"});  // how it is computed
  const Tensor a = call.tensor(0), b = call.tensor(1);
  if (a.rank() < 2 || b.rank() < 2) call.fail("an operand is no matrix", "import_operand");
  return {vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), real_argument(call, "p", 2), Axes(-1), false)};
}

Results dist_op(const OpCall& call) {
  const DType dtype = promoted(call, {0, 1});
  return {
      vector_norm(operand_as(call, 0, dtype) - operand_as(call, 1, dtype), real_argument(call, "p", 2), {}, false)};
}

/// The norm of matrices in two dims: of order 1 or infinity, the largest sum of a column or row; of a negative order
/// the smallest one.
Tensor matrix_norm(const OpCall& call, const Tensor& x, double order, const Ints& dims, bool keeps_dims) {
  if (std::abs(order) == 2)
    call.fail(fmt::format("the matrix norm of order {} needs singular values, which are not supported", order));
  if (std::abs(order) != 1 && !std::isinf(order))
    call.fail(fmt::format("the argument ord is {}", order), "import_attribute");
  const std::int64_t first = std::isinf(order) ? dims[1] : dims[0], last = std::isinf(order) ? dims[0] : dims[1];
  const Tensor sums = x.abs().sum(first, true);
  const Tensor result = order > 0 ? sums.max(last, true) : sums.min(last, true);
  return keeps_dims ? result : result.squeeze(std::max(first, last)).squeeze(std::min(first, last));
}

/// Returns operand 0 in the dtype of the argument.
Tensor typed_operand(const OpCall& call) { return call.tensor(0).to(dtype_argument(call, float_of(call.dtype(0)))); }

Results matrix_norm_op(const OpCall& call) {
  const Tensor x = typed_operand(call);
  const Ints dims = axes_from_front(call, call.integers("dim", {-2, -1}), x.rank());
  if (dims.size() != 2 || dims[0] == dims[1]) call.fail("dim has not two different dims", "import_attribute");
  return {matrix_norm(call, x, real_argument(call, "ord", 2), dims, call.flag("keepdim", false))};
}

/// The Frobenius norm; the nuclear one needs singular values.
Results named_norm(const OpCall& call) {
  const Tensor x = typed_operand(call);
  const std::string order = call.text("ord", "fro");
  if (order != "fro") call.fail(fmt::format("the matrix norm '{}' is not supported; fro is", order));
  const Ints dims = axes_argument(call, "dim", x.rank());
  const Ints last = call.has("dim") ? dims : axes_from_front(call, {-2, -1}, x.rank());
  return {x.norm(axes_of(last), call.flag("keepdim", false))};
}

/// Without `ord`, the norm of order 2 of all elements; of one dim the norm of vectors, and of two that of matrices.
Results any_norm(const OpCall& call) {
  const Tensor x = typed_operand(call);
  const bool keeps = call.flag("keepdim", false);
  const Ints dims = axes_argument(call, "dim", x.rank());
  if (!call.has("ord")) return {x.norm(axes_of(dims), keeps)};
  const double order = real_argument(call, "ord", 2);
  if (dims.size() == 1) return {vector_norm(x, order, axes_of(dims), keeps)};
  if (dims.size() != 2) call.fail(fmt::format("a norm over {} dims", dims.size()), "import_attribute");
  return {matrix_norm(call, x, order, dims, keeps)};
}

/// 1 - cosine for the target 1, and what it exceeds a margin by for -1.
Results cosine_embedding(const OpCall& call) {
  constexpr double epsilon = 1e-12;
  const Tensor a = call.tensor(0), b = call.tensor(1), target = call.tensor(2);
  const int axis = target.rank();  // of the vectors
  const Tensor dot = (a * b).sum(axis), sizes = ((a * a).sum(axis) + epsilon) * ((b * b).sum(axis) + epsilon);
  const Tensor cosine = dot / sqrt(sizes);
  const Tensor apart = relu(cosine - real_argument(call, "margin", 0));
  const Tensor zero = cosine * 0.0;
  return reduced_loss(call, where(target == 1, 1.0 - cosine, where(target == -1, apart, zero)));
}

/// The difference of two distances from an anchor and a margin, at least 0.
Results triplet_margin(const OpCall& call) {
  const Tensor anchor = call.tensor(0), positive = call.tensor(1), negative = call.tensor(2);
  const double p = real_argument(call, "p", 2), eps = real_argument(call, "eps", 1e-6);
  const auto distance = [&](const Tensor& a, const Tensor& b) { return distance_of(a, b, p, eps, false); };
  Tensor far = distance(anchor, negative);
  if (call.flag("swap", false)) far = minimum(far, distance(positive, negative));
  return reduced_loss(call, relu(distance(anchor, positive) - far + real_argument(call, "margin", 1)));
}

/// Scales parts of a dim so that no norm is above a limit.
Results renorm(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank());
  Ints others;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) others.push_back(i);
  const double limit = real_argument(call, "maxnorm", 1);
  const Tensor norms = vector_norm(x, real_argument(call, "p", 2), axes_of(others), true);
  return {x * where(norms > limit, limit / (norms + 1e-7), 1)};
}

}  // namespace

std::span<const OpRecord> aten_distance_ops() {
  static constexpr OpRecord records[] = {
      aten("cosine_similarity", "x1 x2", "dim eps", cosine_similarity),
      aten("pairwise_distance", "x1 x2", "p eps keepdim", pairwise_distance),
      aten("cdist", "x1 x2", "p compute_mode", cdist),
      aten("_cdist_forward", "x1 x2", "p compute_mode", cdist),
      aten("dist", "self other", "p", dist_op),
      aten("linalg_matrix_norm", "self", "ord dim keepdim dtype", matrix_norm_op),
      aten("linalg_matrix_norm.str_ord", "self", "ord dim keepdim dtype", named_norm),
      aten("linalg_norm", "self", "ord dim keepdim dtype", any_norm),
      aten("linalg_norm.ord_str", "self", "ord dim keepdim dtype", named_norm),
      aten("cosine_embedding_loss", "input1 input2 target", "margin reduction", cosine_embedding),
      aten("triplet_margin_loss", "anchor positive negative", "margin p eps swap reduction", triplet_margin),
      aten("renorm", "self", "p dim maxnorm", renorm),
  };
  return records;
}

}  // namespace lathe::pt2
