#include <fmt/core.h>

#include <numeric>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir {

namespace {

[[noreturn]] void fail(const Value& a, std::string_view op, std::string_view label, std::string_view message,
                       std::string_view hint) {
  throw UserError(a.builder().location(), op, message, label, hint);
}

int require_axis(const Value& a, int dim, int rank, std::string_view op) {
  if (dim < -rank || dim >= rank)
    fail(a, op, "dim_range", fmt::format("dim {} is out of range for {}", dim, a.type().to_string()),
         rank == 0 ? std::string("a scalar has no dims") : fmt::format("use {} to {}", -rank, rank - 1));
  return static_cast<int>(from_front(dim, rank));
}

void require_parts(std::span<const Value> parts, std::string_view op) {
  if (parts.empty()) throw UserError(fmt::format("{}: nothing to join", op), "op_arity", "give one tensor or more");
}

/// The permutation that moves `dim` to the end of 0 .. rank-1, and its inverse.
struct Move {
  std::vector<std::int64_t> there, back;
};
Move move_last(int dim, int rank) {
  Move move;
  for (int i = 0; i < rank; ++i)
    if (i != dim) move.there.push_back(i);
  move.there.push_back(dim);
  move.back.resize(move.there.size());
  for (std::size_t i = 0; i < move.there.size(); ++i) move.back[move.there[i]] = static_cast<std::int64_t>(i);
  return move;
}

}  // namespace

Value contract(const Value& a, const Value& b, std::string_view spec) {
  return a.builder().add(ops::contract, {a, b}, {{"spec", std::string(spec)}});
}

Value gather(const Value& table, const Value& indices, int dim) {
  return table.builder().add(ops::gather, {table, indices}, {{"dim", from_front(dim, table.rank())}});
}

Value scatter_add(const Value& indices, const Value& updates, const Dim& size, int dim) {
  const int rank = updates.rank() - indices.rank() + 1;
  return indices.builder().add(ops::scatter_add, {indices, updates},
                               {{"size", size}, {"dim", from_front(dim, rank)}});
}

Value update_rows(const Value& a, const Value& positions, const Value& rows, int dim) {
  return a.builder().add(ops::update_rows, {a, positions, rows}, {{"dim", from_front(dim, a.rank())}});
}

Value scatter(const Value& a, const Value& indices, const Value& source, int dim) {
  const bool same = indices.rank() == source.rank();
  for (int i = 0; same && i < source.rank(); ++i)
    if (!(indices.shape()[i] == source.shape()[i]) && indices.shape()[i].value() && source.shape()[i].value())
      fail(a, "scatter", "scatter_indices",
           fmt::format("{} and {} differ in dim {}", indices.type().to_string(), source.type().to_string(), i),
           "indices have the shape of the source");
  if (!same)
    fail(a, "scatter", "scatter_indices",
         fmt::format("{} and {} differ in rank", indices.type().to_string(), source.type().to_string()),
         "indices have the shape of the source");
  return update_rows(a, indices, source, dim);
}

Value cumsum(const Value& a, int dim, bool exclusive, bool reverse) {
  return apply(ops::cumsum, {a},
               {{"dim", from_front(dim, a.rank())}, {"exclusive", exclusive}, {"reverse", reverse}});
}

Value linear_recurrence(const Value& a, const Value& b, int dim, bool reverse) {
  return apply(ops::linear_recurrence, {a, b}, {{"dim", from_front(dim, b.rank())}, {"reverse", reverse}});
}

Value argsort(const Value& a, int dim, bool descending) {
  return apply(ops::argsort, {a}, {{"dim", from_front(dim, a.rank())}, {"descending", descending}});
}

Value top_k(const Value& a, const Dim& k, int dim, bool largest) {
  return apply(ops::top_k, {a}, {{"k", k}, {"dim", from_front(dim, a.rank())}, {"largest", largest}});
}

Value solve_triangular(const Value& a, const Value& b, bool upper, bool transpose, bool unit_diagonal) {
  return apply(ops::solve_triangular, {a, b},
               {{"upper", upper}, {"transpose", transpose}, {"unit_diagonal", unit_diagonal}});
}

Value orthonormal_basis(const Value& a) { return apply(ops::orthonormal_basis, {a}); }
Value orthonormal_basis(const Value& a, const Value& when, const Value& otherwise) {
  return apply(ops::orthonormal_basis, {a, when, otherwise});
}

Value eigenvectors(const Value& a) { return apply(ops::eigenvectors, {a}); }
Value eigenvectors(const Value& a, const Value& when, const Value& otherwise) {
  return apply(ops::eigenvectors, {a, when, otherwise});
}

Value grouped_matmul(const Value& x, const Value& offsets, std::span<const Value> weights) {
  std::vector<Value> operands = {x, offsets};
  operands.insert(operands.end(), weights.begin(), weights.end());
  return x.builder().add(ops::grouped_matmul, operands);
}

Value segment_outer(const Value& a, const Value& b, const Value& offsets, std::int64_t segment) {
  return apply(ops::segment_outer, {a, b, offsets}, {{"segment", segment}});
}

Value checked_index(const Value& indices, const Dim& size) {
  return gather(iota(indices.builder(), {size}, 0, indices.dtype()), indices, 0);
}

/// Moves `dim` to the end and flattens the others to rows: element [r, indices[r, k]] is at r*n + indices[r, k] of
/// the flat operand. Reads r*n from an iota over the flat operand, because n may be unknown until run time. Checks
/// each index, because one out of range would address another row.
Value take_along(const Value& a, const Value& indices, int dim) {
  const int rank = a.rank(), d = require_axis(a, dim, rank, "take_along");
  if (indices.rank() != rank)
    fail(a, "take_along", "take_along_rank",
         fmt::format("{} and {} differ in rank", a.type().to_string(), indices.type().to_string()),
         "indices have a dim for each dim of the operand");
  GraphBuilder& b = a.builder();
  const Move move = move_last(d, rank);
  Value source = a;
  for (int i = 0; i < rank; ++i)
    if (i != d && !(a.shape()[i] == indices.shape()[i])) source = slice(source, i, 0, indices.shape()[i]);
  const Value index = permute(indices, move.there);  // [.., k]
  const Dim n = a.shape()[d].unnamed(), k = indices.shape()[d].unnamed();
  Dim rows(1);
  for (int i = 0; i < rank; ++i)
    if (i != d) rows = rows * indices.shape()[i].unnamed();
  const Value flat = reshape(permute(source, move.there), {rows * n});
  if (n.is(0)) return reshape(gather(flat, index), indices.shape());
  const Value starts = slice(view(iota(b, {rows * n}, 0, index.dtype()), {rows, n}), 1, 0, 1);  // [rows, 1]
  const Value positions = add(reshape(checked_index(index, n), {rows, k}), starts);             // [rows, k]
  return permute(reshape(gather(flat, positions), index.shape()), move.back);
}

Value concat(std::span<const Value> parts, int dim) {
  require_parts(parts, "concat");
  return parts[0].builder().add(ops::concat, parts, {{"dim", from_front(dim, parts[0].rank())}});
}

Value stack(std::span<const Value> parts, int dim) {
  require_parts(parts, "stack");
  const int d = require_axis(parts[0], dim, parts[0].rank() + 1, "stack");
  std::vector<Value> raised;
  for (const Value& part : parts) raised.push_back(unsqueeze(part, d));
  return concat(raised, d);
}

Value pad(const Value& a, int dim, const Dim& low, const Dim& high) {
  return a.builder().add(ops::pad, {a}, {{"dim", from_front(dim, a.rank())}, {"low", low}, {"high", high}});
}

Value repeat_interleave(const Value& a, std::int64_t times, int dim) {
  const int d = require_axis(a, dim, a.rank(), "repeat_interleave");
  if (times < 1)
    fail(a, "repeat_interleave", "repeat_times", fmt::format("{} repeats are asked for", times), "give 1 or more");
  Shape repeated, joined = a.shape();
  for (int i = 0; i < a.rank(); ++i) {
    repeated.push_back(a.shape()[i]);
    if (i == d) repeated.push_back(Dim(times));
  }
  joined.set(d, a.shape()[d].unnamed() * Dim(times));
  return reshape(expand(unsqueeze(a, d + 1), repeated), joined);
}

}  // namespace lathe::ir
