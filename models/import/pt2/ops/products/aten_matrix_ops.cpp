#include <fmt/core.h>

#include <limits>

#include "frontend/ops/factorizations.h"
#include "models/import/ops/elimination.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Factors, inverses and determinants of matrices, and systems of equations. Where PyTorch throws an error for a
/// singular matrix, results are NaN.
namespace lathe::pt2 {

namespace {

Tensor transposed(const Tensor& x) { return x.transpose(-2, -1); }

void require_matrices(const OpCall& call, std::size_t i) {
  if (call.operand(i).rank() < 2) call.fail(fmt::format("operand {} is no matrix", i), "import_operand");
}

/// Returns both with their dims before the last two broadcast to one shape.
std::pair<Tensor, Tensor> with_common_batch(const Tensor& a, const Tensor& b) {
  const auto batch = [](const Tensor& x) {
    Shape shape;
    for (int i = 0; i + 2 < x.rank(); ++i) shape.push_back(x.size(i));
    return x.graph().zeros(shape, i64);
  };
  const Shape common = (batch(a) + batch(b)).shape();
  const auto expanded = [&](const Tensor& x) {
    Shape shape = common;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    return x.expand(shape);
  };
  return {expanded(a), expanded(b)};
}

/// PyTorch reads one triangle of a symmetric matrix, and gives both the same gradient.
Tensor symmetric(const Tensor& x, bool is_upper) {
  const Tensor half = is_upper ? transposed(x) : x;
  return straight_through(tril(half) + transposed(tril(half, -1)), x);
}

Results cholesky_op(const OpCall& call) {
  require_matrices(call, 0);
  call.ignore({"check_errors"});
  const bool is_upper = call.flag("upper", false);
  const Tensor lower = cholesky(symmetric(call.tensor(0), is_upper));
  return {is_upper ? transposed(lower) : lower};
}

/// Solves (L L^T) x = b, for L or its transpose.
Tensor solved_by_factor(const Tensor& factor, const Tensor& b, bool is_upper) {
  const auto [a, right] = with_common_batch(factor, b);
  const Tensor first = solve_triangular(a, right, {.upper = is_upper, .transpose = is_upper});
  return solve_triangular(a, first, {.upper = is_upper, .transpose = !is_upper});
}
Results cholesky_solve(const OpCall& call) {
  require_matrices(call, 0);
  require_matrices(call, 1);
  return {solved_by_factor(call.tensor(1), call.tensor(0), call.flag("upper", false))};
}
Results cholesky_inverse(const OpCall& call) {
  require_matrices(call, 0);
  const Tensor factor = call.tensor(0);
  const Tensor one = call.graph().eye(factor.size(-1), factor.dtype());
  return {solved_by_factor(factor, one, call.flag("upper", false))};
}

/// a x = b, or x a = b.
Results triangular_solution(const OpCall& call) {
  require_matrices(call, 0);
  require_matrices(call, 1);
  const bool is_left = call.flag("left", true);
  const Tensor right = call.tensor(1);
  const auto [a, b] = with_common_batch(call.tensor(0), is_left ? right : transposed(right));
  const Tensor x = solve_triangular(a, b,
                                    {.upper = call.flag("upper", false),
                                     .transpose = !is_left,
                                     .unit_diagonal = call.flag("unitriangular", false)});
  return {is_left ? x : transposed(x)};
}

/// Right sides of the rank of a without its last dim are vectors.
Results solution(const OpCall& call) {
  require_matrices(call, 0);
  call.ignore({"check_errors"});
  const bool is_left = call.flag("left", true);
  const Tensor given = call.tensor(0), right = call.tensor(1);
  const bool is_vector = right.rank() == 1 || (right.rank() + 1 == given.rank() &&
                                               right.size(-1).equals(given.size(-1)) == Dim::Answer::yes);
  const Tensor columns = is_vector ? right.unsqueeze(-1) : is_left ? right : transposed(right);
  const auto [a, b] = with_common_batch(is_left ? given : transposed(given), columns);
  const Tensor x = importing::eliminate(call, a, b).solution;
  return {is_vector ? x.squeeze(-1) : is_left ? x : transposed(x)};
}

Results inverse(const OpCall& call) {
  require_matrices(call, 0);
  call.ignore({"check_errors"});
  const Tensor a = call.tensor(0);
  return {importing::eliminate(call, a, call.graph().eye(a.size(-1), a.dtype()).expand(a.shape())).solution};
}

Results determinant(const OpCall& call) { return {importing::eliminate(call, call.tensor(0), {}).determinant}; }
Results sign_and_logarithm(const OpCall& call) {
  const importing::Eliminated parts = importing::eliminate(call, call.tensor(0), {});
  return {parts.sign, parts.log_magnitude};
}
Results log_determinant(const OpCall& call) {
  const importing::Eliminated parts = importing::eliminate(call, call.tensor(0), {});
  return {where(parts.sign < 0, std::numeric_limits<double>::quiet_NaN(), parts.log_magnitude)};
}

Results symmetric_eigenvalues(const OpCall& call) {
  require_matrices(call, 0);
  return {eigh(symmetric(call.tensor(0), call.text("UPLO", "L") == "U")).values};
}

}  // namespace

std::span<const OpRecord> aten_matrix_ops() {
  static constexpr OpRecord records[] = {
      aten("cholesky", "self", "upper", cholesky_op),
      aten("linalg_cholesky", "self", "upper", cholesky_op),
      aten("linalg_cholesky_ex", "self", "upper check_errors", cholesky_op),
      aten("cholesky_solve", "self input2", "upper", cholesky_solve),
      aten("cholesky_inverse", "self", "upper", cholesky_inverse),
      aten("linalg_solve_triangular", "self B", "upper left unitriangular", triangular_solution),
      aten("linalg_solve", "A B", "left", solution),
      aten("_linalg_solve_ex", "A B", "left check_errors", solution),
      aten("inverse", "self", "", inverse),
      aten("linalg_inv", "A", "", inverse),
      aten("linalg_inv_ex", "A", "check_errors", inverse),
      aten("det", "self", "", determinant),
      aten("linalg_det", "A", "", determinant),
      aten("_linalg_det", "A", "", determinant),
      aten("slogdet", "self", "", sign_and_logarithm),
      aten("linalg_slogdet", "A", "", sign_and_logarithm),
      aten("_linalg_slogdet", "A", "", sign_and_logarithm),
      aten("logdet", "self", "", log_determinant),
      aten("linalg_eigvalsh", "self", "UPLO", symmetric_eigenvalues),
  };
  return records;
}

}  // namespace lathe::pt2
