#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/matrix_rules.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/tensors/host_tensor.h"

namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

Value transposed(const Value& a) { return ir::transpose(a, a.rank() - 2, a.rank() - 1); }

// ---- cholesky: a [.., n, n] -> [.., n, n]

TensorType infer_cholesky(const InferContext& ctx) {
  rules::require_square(ctx, 0);
  return TensorType::contiguous(ctx.operand(0).dtype, ctx.operand(0).shape);
}

HostTensor cholesky_reference(const Node&, Operands operands, const Sizes& sizes) {
  HostTensor result(f64, sizes);
  const std::int64_t n = sizes.back();
  for (std::int64_t m = 0; m < rules::matrices_in(sizes); ++m) {
    const double* a = operands[0]->as<double>().data() + m * n * n;
    double* l = result.as<double>().data() + m * n * n;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) {
        double rest = (a[i * n + j] + a[j * n + i]) * 0.5;
        for (std::int64_t k = 0; k < j; ++k) rest -= l[i * n + k] * l[j * n + k];
        if (j < i)
          l[i * n + j] = rest / l[j * n + j];
        else
          l[i * n + i] = rest > 0 ? std::sqrt(rest) : std::numeric_limits<double>::quiet_NaN();
      }
  }
  return result;
}

/// With P the lower triangle of L^T G with half its diagonal, S = L^-T P L^-1 is the gradient for changes that keep
/// `a` symmetric; (S + S^T) / 2 is that of the mean of `a` and its transpose (Murray 2016, "Differentiation of the
/// Cholesky decomposition", equation 10).
void cholesky_gradient(const GradientContext& g) {
  const Value product = ir::matmul(transposed(g.result), g.grad);
  const Value half = ir::mul(ir::add(ir::tril(product), ir::tril(product, -1)), 0.5);
  const Value left = ir::solve_triangular(g.result, half, false, true);
  const Value both = ir::solve_triangular(g.result, transposed(left), false, true);  // S^T
  g.set(0, ir::mul(ir::add(both, transposed(both)), 0.5));
}

std::vector<DimPair> cholesky_dims(const Graph&, const Node& node) {
  return rules::batch_dims({0}, node.type.rank());
}

std::vector<Sample> cholesky_samples() {
  const auto sample = [](Sizes sizes) {
    return Sample{.operands = {{std::move(sizes), f64, -1, 1, 8}}, .attrs = {}};
  };
  return {sample({3, 3}), sample({2, 3, 3}), sample({1, 1}), sample({2, 2, 2, 2}),
          sample({0, 0}), sample({0, 3, 3}), sample({5, 5})};
}

// ---- solve_triangular: a [.., n, n], b [.., n, k] -> [.., n, k]

TensorType infer_solve(const InferContext& ctx) {
  rules::require_square(ctx, 0);
  const TensorType &a = ctx.operand(0), &b = ctx.operand(1);
  rules::require_same_dtype(ctx);
  ctx.require(a.rank() == b.rank(), "solve_shape",
              fmt::format("{} and {} differ in rank", rules::describe(ctx, 0), rules::describe(ctx, 1)),
              "a is [.., n, n], b is [.., n, k]; unsqueeze a vector, expand what all matrices share");
  for (int d = 0; d + 1 < a.rank(); ++d)
    ctx.require_equal(
        a.shape[d], b.shape[d], "solve_shape",
        fmt::format("dim {} of {} does not match {}", d, rules::describe(ctx, 1), rules::describe(ctx, 0)),
        "a is [.., n, n], b is [.., n, k]; expand what all matrices share");
  return TensorType::contiguous(b.dtype, b.shape);
}

HostTensor solve_reference(const Node& node, Operands operands, const Sizes& sizes) {
  HostTensor result(f64, sizes);
  const bool transpose = node.attrs.get<bool>("transpose"), unit = node.attrs.get<bool>("unit_diagonal");
  const bool upward = node.attrs.get<bool>("upper") != transpose;  // the last unknown is found first
  const std::int64_t n = sizes[sizes.size() - 2], columns = sizes.back();
  for (std::int64_t m = 0; m < rules::matrices_in(sizes); ++m) {
    const double* a = operands[0]->as<double>().data() + m * n * n;
    const double* b = operands[1]->as<double>().data() + m * n * columns;
    double* x = result.as<double>().data() + m * n * columns;
    const auto element = [&](std::int64_t i, std::int64_t j) { return transpose ? a[j * n + i] : a[i * n + j]; };
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t turn = 0; turn < n; ++turn) {
        const std::int64_t i = upward ? n - 1 - turn : turn;
        double rest = b[i * columns + c];
        for (std::int64_t before = 0; before < turn; ++before) {
          const std::int64_t j = upward ? n - 1 - before : before;
          rest -= element(i, j) * x[j * columns + c];
        }
        x[i * columns + c] = unit ? rest : rest / element(i, i);
      }
  }
  return result;
}

/// The gradient of b is h = op(a)^-T g; that of op(a) is -h x^T, of which only the triangle that is read counts
/// (Giles 2008, "Collected matrix derivative results for forward and reverse mode AD", section 2.2.3).
void solve_gradient(const GradientContext& g) {
  const bool upper = g.node.attrs.get<bool>("upper"), transpose = g.node.attrs.get<bool>("transpose");
  const bool unit = g.node.attrs.get<bool>("unit_diagonal");
  const Value right = ir::solve_triangular(g.operand(0), g.grad, upper, !transpose, unit);
  if (g.needs(1)) g.set(1, right);
  if (!g.needs(0)) return;
  const Value outer = transpose ? ir::matmul(g.result, transposed(right)) : ir::matmul(right, transposed(g.result));
  const int inside = unit ? 1 : 0;  // a diagonal of ones is not read
  g.set(0, ir::neg(upper ? ir::triu(outer, inside) : ir::tril(outer, -inside)));
}

std::vector<DimPair> solve_dims(const Graph&, const Node& node) {
  std::vector<DimPair> pairs = rules::batch_dims({0, 1}, node.type.rank());
  pairs.push_back({1, node.type.rank() - 1, node.type.rank() - 1});
  return pairs;
}

std::vector<Sample> solve_samples() {
  const auto sample = [](Sizes a, Sizes b, bool upper, bool transpose, bool unit) {
    return Sample{.operands = {{std::move(a), f64, -0.3, 0.3, 2}, {std::move(b)}},
                  .attrs = {{"upper", upper}, {"transpose", transpose}, {"unit_diagonal", unit}}};
  };
  return {sample({3, 3}, {3, 2}, false, false, false),
          sample({3, 3}, {3, 2}, true, false, false),
          sample({2, 3, 3}, {2, 3, 2}, false, true, false),
          sample({3, 3}, {3, 1}, true, true, true),
          sample({2, 2, 2, 2}, {2, 2, 2, 3}, false, false, true),
          sample({1, 1}, {1, 1}, false, false, false),
          sample({0, 0}, {0, 2}, false, false, false),
          sample({3, 3}, {3, 0}, true, false, false),
          sample({5, 5}, {5, 3}, true, true, false)};
}

constexpr std::string_view cholesky_labels[] = {"dtype_kind", "triangle_rank", "matrix_square"};
constexpr std::string_view solve_labels[] = {"dtype_kind", "dtype_match", "triangle_rank", "matrix_square",
                                             "solve_shape"};
constexpr AttrSpec solve_attrs[] = {
    {"upper", AttrKind::boolean, false, false, "a is upper triangular; its lower triangle is not read"},
    {"transpose", AttrKind::boolean, false, false, "solve with the transpose of a"},
    {"unit_diagonal", AttrKind::boolean, false, false, "the diagonal of a is taken as ones and not read"}};

}  // namespace

constinit const Op cholesky = {
    .name = "cholesky",
    .doc = "a [.., n, n] -> lower triangular L with L L^T = (a + a^T) / 2; NaN where that is not positive definite",
    .arity = Arity{1, 1},
    .attrs = std::span<const AttrSpec>(),
    .labels = cholesky_labels,
    .infer = infer_cholesky,
    .meaning = Custom{CustomKind::cholesky, cholesky_reference, DimRule(cholesky_dims)},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(cholesky_gradient),
    .samples = cholesky_samples,
};

constinit const Op solve_triangular = {
    .name = "solve_triangular",
    .doc = "the x [.., n, k] with a x = b, or a^T x = b, for a triangular a [.., n, n] and b [.., n, k]",
    .arity = Arity{2, 2},
    .attrs = solve_attrs,
    .labels = solve_labels,
    .infer = infer_solve,
    .meaning = Custom{CustomKind::solve_triangular, solve_reference, DimRule(solve_dims)},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(solve_gradient),
    .samples = solve_samples,
};

}  // namespace lathe::ir::ops
