#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/matrix_rules.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/support/tensors/host_tensor.h"

/// Orthonormal bases of matrices. Both ops take (a), or (a, when, otherwise): where the bool scalar `when` is false,
/// the result is `otherwise`, and the kernel skips the factorization.
namespace lathe::ir::ops {

namespace {

using Sizes = std::vector<std::int64_t>;
using Operands = std::span<const HostTensor* const>;

Value transposed_matrix(const Value& a) { return ir::transpose(a, a.rank() - 2, a.rank() - 1); }

/// Requires no other operand than the first, or `when` and `otherwise`.
void require_alternative(const InferContext& ctx) {
  if (ctx.arity() == 1) return;
  constexpr std::string_view hint = "give a, or a, a bool scalar and a tensor of the type of a";
  ctx.require(ctx.arity() == 3, "basis_otherwise", "`when` is given without `otherwise`", hint);
  const TensorType &a = ctx.operand(0), &when = ctx.operand(1), &otherwise = ctx.operand(2);
  ctx.require(when.dtype == boolean && when.rank() == 0, "basis_otherwise",
              fmt::format("`when` is {}", rules::describe(ctx, 1)), hint);
  const std::string differ = fmt::format("{} and {} differ", rules::describe(ctx, 0), rules::describe(ctx, 2));
  ctx.require(a.dtype == otherwise.dtype && a.rank() == otherwise.rank(), "basis_otherwise", differ, hint);
  for (int d = 0; d < a.rank(); ++d)
    ctx.require_equal(a.shape[d], otherwise.shape[d], "basis_otherwise", differ, hint);
}

/// Sets the gradient of `otherwise`. Returns the gradient of the basis: zeros if `when` is false.
Value gradient_of_basis(const GradientContext& g) {
  if (g.operands.size() == 1) return g.grad;
  if (g.needs(2)) g.set(2, ir::where(g.operand(1), 0.0, g.grad));
  return ir::where(g.operand(1), g.grad, 0.0);
}

void set_gradient_of_a(const GradientContext& g, const Value& gradient) {
  g.set(0, g.operands.size() == 1 ? gradient : ir::where(g.operand(1), gradient, 0.0));
}

std::vector<DimPair> basis_dims(const Graph&, const Node& node) {
  return rules::batch_dims(node.operands.size() == 1 ? std::vector<int>{0} : std::vector<int>{0, 2},
                           node.type.rank());
}

/// Calls `factorize(a, result)` for each matrix, or copies `otherwise`.
template <class Factorize>
HostTensor basis_reference(Operands operands, const Sizes& sizes, const Factorize& factorize) {
  HostTensor result(f64, sizes);
  const std::int64_t elements = sizes[sizes.size() - 2] * sizes.back();
  const bool skips = operands.size() == 3 && operands[1]->get(0) == 0;
  for (std::int64_t m = 0; m < rules::matrices_in(sizes); ++m) {
    double* to = result.as<double>().data() + m * elements;
    if (skips)
      std::copy_n(operands[2]->as<double>().data() + m * elements, elements, to);
    else
      factorize(operands[0]->as<double>().data() + m * elements, to);
  }
  return result;
}

// ---- orthonormal_basis: a [.., m, n] -> [.., m, n]

TensorType infer_basis(const InferContext& ctx) {
  rules::require_matrices(ctx, 0);
  const TensorType& a = ctx.operand(0);
  rules::require_at_most(ctx, a.shape[a.rank() - 1], a.shape[a.rank() - 2], "basis_columns",
                         fmt::format("{} has matrices with more columns than rows", rules::describe(ctx, 0)),
                         "transpose it");
  require_alternative(ctx);
  return TensorType::contiguous(a.dtype, a.shape);
}

/// Subtracts 2 (v . x) v from each column of x [rows, columns], for a unit vector v.
void reflect(const std::vector<double>& v, double* x, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) {
    double dot = 0;
    for (std::size_t i = 0; i < v.size(); ++i) dot += v[i] * x[static_cast<std::int64_t>(i) * columns + j];
    for (std::size_t i = 0; i < v.size(); ++i) x[static_cast<std::int64_t>(i) * columns + j] -= 2 * dot * v[i];
  }
}

/// Householder reflections (Golub and Van Loan 2013, section 5.2).
void reference_qr(const double* a, double* q, std::int64_t m, std::int64_t n) {
  std::vector<double> r(a, a + m * n), signs;
  std::vector<std::vector<double>> mirrors;
  for (std::int64_t k = 0; k < n; ++k) {
    std::vector<double> v(static_cast<std::size_t>(m), 0.0);
    double below = 0;
    for (std::int64_t i = k; i < m; ++i) {
      v[static_cast<std::size_t>(i)] = r[static_cast<std::size_t>(i * n + k)];
      if (i > k) below = std::hypot(below, v[static_cast<std::size_t>(i)]);
    }
    double& pivot = v[static_cast<std::size_t>(k)];
    const double first = pivot, length = std::hypot(first, below);
    pivot = below == 0 ? 0 : first + std::copysign(length, first);
    const double norm = std::hypot(pivot, below);
    if (norm != 0)
      for (double& each : v) each /= norm;
    reflect(v, r.data(), n);
    signs.push_back(r[static_cast<std::size_t>(k * n + k)] < 0 ? -1 : 1);
    mirrors.push_back(std::move(v));
  }
  std::fill_n(q, m * n, 0.0);
  for (std::int64_t k = 0; k < n; ++k) q[k * n + k] = signs[static_cast<std::size_t>(k)];
  for (std::int64_t k = n; k-- > 0;) reflect(mirrors[static_cast<std::size_t>(k)], q, n);
}

HostTensor orthonormal_reference(const Node&, Operands operands, const Sizes& sizes) {
  return basis_reference(operands, sizes, [&](const double* a, double* q) {
    reference_qr(a, q, sizes[sizes.size() - 2], sizes.back());
  });
}

/// With r = q^T a, the gradient is (g + q copyltu(-g^T q)) r^-T, where copyltu mirrors the lower triangle (Seeger et
/// al. 2017, "Auto-differentiating linear algebra", section 4.3).
void orthonormal_gradient(const GradientContext& g) {
  const Value grad = gradient_of_basis(g);
  if (!g.needs(0)) return;
  const Value& q = g.result;
  const Value r = ir::matmul(transposed_matrix(q), g.operand(0));
  const Value inner = ir::neg(ir::matmul(transposed_matrix(grad), q));
  const Value mirrored = ir::add(ir::tril(inner), transposed_matrix(ir::tril(inner, -1)));
  const Value sum = ir::add(grad, ir::matmul(q, mirrored));
  set_gradient_of_a(g, transposed_matrix(ir::solve_triangular(r, transposed_matrix(sum), true)));
}

SampleOperand matrix_sample(Sizes sizes) { return {std::move(sizes), f64, -1, 1, 3}; }

std::vector<Sample> orthonormal_samples() {
  const auto sample = [](Sizes sizes) { return Sample{.operands = {matrix_sample(std::move(sizes))}, .attrs = {}}; };
  return {sample({3, 3}),
          sample({5, 3}),
          sample({2, 4, 2}),
          sample({1, 1}),
          sample({2, 2, 3, 2}),
          sample({0, 0}),
          sample({3, 0}),
          sample({0, 3, 3}),
          {.operands = {matrix_sample({4, 3}), {{}, boolean, 0, 1}, {{4, 3}}}, .attrs = {}},
          {.operands = {matrix_sample({2, 3, 3}), {{}, boolean, 0, 1}, {{2, 3, 3}}}, .attrs = {}}};
}

// ---- eigenvectors: a [.., n, n] -> [.., n, n]

TensorType infer_eigenvectors(const InferContext& ctx) {
  rules::require_square(ctx, 0);
  require_alternative(ctx);
  return TensorType::contiguous(ctx.operand(0).dtype, ctx.operand(0).shape);
}

/// Rotates rows (or columns) p and q of x [n, n]; `along` is the distance of their elements.
void rotate(double* p, double* q, std::int64_t along, std::int64_t n, double cosine, double sine) {
  for (std::int64_t k = 0; k < n; ++k) {
    const double x = p[k * along], y = q[k * along];
    p[k * along] = cosine * x - sine * y;
    q[k * along] = sine * x + cosine * y;
  }
}

/// The cyclic Jacobi method by rows (Golub and Van Loan 2013, section 8.5).
void reference_eigenvectors(const double* a, double* v, std::int64_t n) {
  std::vector<double> s(static_cast<std::size_t>(n * n));
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const double mean = (a[i * n + j] + a[j * n + i]) / 2;
      s[static_cast<std::size_t>(i * n + j)] = mean;
      largest = std::isfinite(mean) ? std::max(largest, std::abs(mean)) : std::numeric_limits<double>::quiet_NaN();
      if (std::isnan(largest)) {
        std::fill_n(v, n * n, largest);
        return;
      }
    }
  for (std::int64_t i = 0; i < n * n; ++i) v[i] = i % (n + 1) == 0 ? 1 : 0;
  const double least = largest * std::numeric_limits<double>::epsilon();
  for (bool turned = true; std::exchange(turned, false);)
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t q = p + 1; q < n; ++q) {
        double *row_p = s.data() + p * n, *row_q = s.data() + q * n;
        if (std::abs(row_p[q]) <= least) continue;
        turned = true;
        const double angle = 0.5 * std::atan(2 * row_p[q] / (row_q[q] - row_p[p]));
        const double quarter = row_q[q] == row_p[p] ? std::copysign(std::atan(1.0), row_p[q]) : angle;
        const double cosine = std::cos(quarter), sine = std::sin(quarter);
        rotate(row_p, row_q, 1, n, cosine, sine);
        rotate(s.data() + p, s.data() + q, n, n, cosine, sine);
        rotate(v + p, v + q, n, n, cosine, sine);
      }
}

HostTensor eigenvectors_reference(const Node&, Operands operands, const Sizes& sizes) {
  return basis_reference(operands, sizes,
                         [&](const double* a, double* v) { reference_eigenvectors(a, v, sizes.back()); });
}

/// With the eigenvalues e, the gradient is v (f * (v^T g)) v^T, f[i, j] = 1 / (e[j] - e[i]) and 0 on the diagonal
/// (Giles 2008, section 3.1), of which the symmetric part counts. Equal eigenvalues give infinities or NaN.
void eigenvectors_gradient(const GradientContext& g) {
  const Value grad = gradient_of_basis(g);
  if (!g.needs(0)) return;
  const Value &v = g.result, &a = g.operand(0);
  const Value symmetric = ir::mul(ir::add(a, transposed_matrix(a)), 0.5);
  const Value values = ir::sum(ir::mul(v, ir::matmul(symmetric, v)), {v.rank() - 2}, true);  // [.., 1, n]
  const Value gaps = ir::sub(values, transposed_matrix(values));
  const Dim n = v.shape()[v.rank() - 1];
  const Value same = ir::eq(ir::iota(g.builder, {n, 1}, 0, i64), ir::iota(g.builder, {1, n}, 1, i64));
  const Value weights = ir::where(same, 0.0, ir::div(1.0, ir::where(same, 1.0, gaps)));
  const Value inner = ir::mul(weights, ir::matmul(transposed_matrix(v), grad));
  const Value whole = ir::matmul(ir::matmul(v, inner), transposed_matrix(v));
  set_gradient_of_a(g, ir::mul(ir::add(whole, transposed_matrix(whole)), 0.5));
}

std::vector<Sample> eigenvectors_samples() {
  const auto sample = [](Sizes sizes) {
    return Sample{.operands = {SampleOperand{std::move(sizes), f64, -1, 1}}, .attrs = {}};
  };
  return {sample({3, 3}), sample({2, 3, 3}),
          sample({1, 1}), sample({2, 2, 2, 2}),
          sample({0, 0}), sample({0, 3, 3}),
          sample({5, 5}), {.operands = {{{3, 3}, f64, -1, 1}, {{}, boolean, 0, 1}, {{3, 3}}}, .attrs = {}}};
}

constexpr std::string_view orthonormal_labels[] = {"dtype_kind", "triangle_rank", "basis_columns", "basis_otherwise"};
constexpr std::string_view eigenvectors_labels[] = {"dtype_kind", "triangle_rank", "matrix_square",
                                                    "basis_otherwise"};

}  // namespace

constinit const Op orthonormal_basis = {
    .name = "orthonormal_basis",
    .doc =
        "a [.., m, n], m >= n -> q of a = q r, r with a diagonal of 0 or more; the third operand if the second is "
        "false",
    .arity = Arity{1, 3},
    .attrs = std::span<const AttrSpec>(),
    .labels = orthonormal_labels,
    .infer = infer_basis,
    .meaning = Custom{CustomKind::orthonormal_basis, orthonormal_reference, DimRule(basis_dims)},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(orthonormal_gradient),
    .samples = orthonormal_samples,
};

constinit const Op eigenvectors = {
    .name = "eigenvectors",
    .doc = "a [.., n, n] -> the eigenvectors of (a + a^T) / 2 as columns; the third operand if the second is false",
    .arity = Arity{1, 3},
    .attrs = std::span<const AttrSpec>(),
    .labels = eigenvectors_labels,
    .infer = infer_eigenvectors,
    .meaning = Custom{CustomKind::eigenvectors, eigenvectors_reference, DimRule(basis_dims)},
    .precision = MixedPrecision::f32,
    .gradient = GradientRule(eigenvectors_gradient),
    .samples = eigenvectors_samples,
};

}  // namespace lathe::ir::ops
