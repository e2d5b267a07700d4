#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/derived_ops.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops on diagonals and triangles of matrices, and matrices that are turned.
namespace lathe::pt2 {

namespace {

/// Lathe's tril and triu take numbers.
Results triangle(const OpCall& call, Tensor (*op)(const Tensor&, std::int64_t, Where)) {
  const Tensor x = call.tensor(0);
  const std::int64_t diagonal = call.integer("diagonal", 0);
  const bool is_small = x.dtype() == boolean || is_byte(x.dtype());
  return {op(is_small ? x.to(i32) : x, diagonal, Where::current()).to(x.dtype())};
}
Results tril_op(const OpCall& call) { return triangle(call, tril); }
Results triu_op(const OpCall& call) { return triangle(call, triu); }

/// Returns the diagonal `offset` elements to the right of the main one. Lathe's diagonal is that of a square.
Tensor diagonal_of(const OpCall& call, Tensor x, std::int64_t offset, int a, int b) {
  const int moved = offset > 0 ? b : a;
  const Dim size = x.size(moved).unnamed(), skipped(std::abs(offset));
  if (offset != 0) x = x.slice(moved, size.value() && *size.value() < std::abs(offset) ? size : skipped, size);
  const Dim m = x.size(a).unnamed(), n = x.size(b).unnamed();
  if (m.equals(n) == Dim::Answer::yes) return x.diagonal(a, b);
  if (!m.value() || !n.value())
    call.fail(fmt::format("a diagonal of the sizes {} and {}, of which either may be smaller", m.to_string(),
                          n.to_string()),
              "import_size", "export the model with fixed sizes");
  return (*m.value() > *n.value() ? x.slice(a, 0, n) : x.slice(b, 0, m)).diagonal(a, b);
}

Results diagonal_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int a = call.axis(call.integer("dim1", 0), x.rank()), b = call.axis(call.integer("dim2", 1), x.rank());
  return {diagonal_of(call, x, call.integer("offset", 0), a, b)};
}

/// Returns matrices in the last two dims that have the last dim of x on a diagonal.
Tensor diagonal_matrices(const Tensor& x, std::int64_t offset) {
  const Dim more(std::abs(offset)), size = x.size(-1).unnamed() + more;
  const Tensor rows = x.graph().arange(size, i64).unsqueeze(1), columns = x.graph().arange(size, i64);
  // The element of a row: those of an offset to the left begin in a later row.
  const Tensor elements = padded(x, x.rank() - 1, offset < 0 ? more : 0, offset < 0 ? 0 : more, 0);
  return where(rows + offset == columns, elements.unsqueeze(-1), 0);
}

Results diagonal_embedding(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() == 0) call.fail("the operand has no dims", "import_operand");
  const int rank = x.rank() + 1;
  const int a = call.axis(call.integer("dim1", -2), rank), b = call.axis(call.integer("dim2", -1), rank);
  if (a == b) call.fail("dim1 and dim2 are equal", "import_attribute");
  const Tensor matrices = diagonal_matrices(x, call.integer("offset", 0));
  Ints order;
  for (int i = 0, next = 0; i < rank; ++i) order.push_back(i == a ? rank - 2 : i == b ? rank - 1 : next++);
  return {matrices.permute(order)};
}

/// The matrix of a vector, or the diagonal of a matrix.
Results diag_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::int64_t offset = call.integer("diagonal", 0);
  if (x.rank() != 1 && x.rank() != 2) call.fail(fmt::format("the operand has {} dims", x.rank()), "import_operand");
  return {x.rank() == 1 ? diagonal_matrices(x, offset) : diagonal_of(call, x, offset, 0, 1)};
}

Results trace_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() != 2) call.fail(fmt::format("the operand has {} dims", x.rank()), "import_operand");
  const Tensor elements = diagonal_of(call, x, 0, 0, 1);
  return {(is_float(x.dtype()) || is_complex(x.dtype()) ? elements : elements.to(i64)).sum(0)};
}

/// Returns x with the elements of a tensor [.., n] on a diagonal of the last two dims.
Tensor with_diagonal(const Tensor& x, const Tensor& elements, std::int64_t offset) {
  const Tensor rows = x.graph().arange(x.size(-2), i64).unsqueeze(1), columns = x.graph().arange(x.size(-1), i64);
  const Tensor is_diagonal = rows + offset == columns;
  const Tensor number = where(is_diagonal, rows + std::min<std::int64_t>(offset, 0), 0);
  return where(is_diagonal, elements.rank() == 0 ? elements : gather(elements, number, -1), x);
}

Results diagonal_scatter(const OpCall& call) {
  const Tensor x = call.tensor(0), source = call.tensor(1).to(x.dtype());
  const int a = call.axis(call.integer("dim1", 0), x.rank()), b = call.axis(call.integer("dim2", 1), x.rank());
  if (a == b || source.rank() + 1 != x.rank()) call.fail("the operands have no such diagonal", "import_operand");
  Ints order;
  for (int i = 0; i < x.rank(); ++i)
    if (i != a && i != b) order.push_back(i);
  order.insert(order.end(), {a, b});
  return {with_diagonal(x.permute(order), source, call.integer("offset", 0)).permute(inverse_order(order))};
}

Results fill_diagonal(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() != 2 || call.flag("wrap", false)) call.fail("the operand is no matrix, or the argument wrap is true");
  return {with_diagonal(x, operand_as(call, 1, x.dtype()).reshape({}), 0)};
}

Results flip_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  if (call.integers("dims").empty()) return {x};
  for (const std::int64_t axis : axes_argument(call, "dims", x.rank())) x = x.flip(axis);
  return {x};
}
Results flip_along(const OpCall& call, int axis) {
  const Tensor x = call.tensor(0);
  if (x.rank() <= axis) call.fail(fmt::format("the operand has {} dims", x.rank()), "import_operand");
  return {x.flip(axis)};
}
Results flip_columns(const OpCall& call) { return flip_along(call, 1); }
Results flip_rows(const OpCall& call) { return flip_along(call, 0); }

/// Turns by k quarters from the first towards the second of two dims.
Results rotate_quarters(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Ints dims = axes_from_front(call, call.integers("dims", {0, 1}), x.rank());
  if (dims.size() != 2 || dims[0] == dims[1]) call.fail("dims has not two different dims", "import_attribute");
  switch (((call.integer("k", 1) % 4) + 4) % 4) {
    case 1: return {x.flip(dims[1]).transpose(dims[0], dims[1])};
    case 2: return {x.flip(dims[0]).flip(dims[1])};
    case 3: return {x.flip(dims[0]).transpose(dims[0], dims[1])};
    default: return {x};
  }
}

}  // namespace

std::span<const OpRecord> aten_diagonal_ops() {
  static constexpr OpRecord records[] = {
      aten("tril", "self", "diagonal", tril_op),
      aten("triu", "self", "diagonal", triu_op),
      aten("diagonal", "self", "offset dim1 dim2", diagonal_op),
      aten("diag_embed", "self", "offset dim1 dim2", diagonal_embedding),
      aten("diag", "self", "diagonal", diag_op),
      aten("trace", "self", "", trace_op),
      aten("diagonal_scatter", "self src", "offset dim1 dim2", diagonal_scatter),
      aten("fill_diagonal", "self fill_value", "wrap", fill_diagonal),
      aten("flip", "self", "dims", flip_op, Moves::first),
      aten("fliplr", "self", "", flip_columns),
      aten("flipud", "self", "", flip_rows),
      aten("rot90", "self", "k dims", rotate_quarters),
  };
  return records;
}

}  // namespace lathe::pt2
