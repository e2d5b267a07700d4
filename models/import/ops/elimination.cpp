#include "models/import/ops/elimination.h"

#include <fmt/core.h>

#include <limits>

#include "frontend/ops/loops/loops.h"

namespace lathe::importing {

namespace {

/// Makes column `j` that of the unit matrix. The states are the rows of a and b next to each other, the sign, the
/// logarithm of the magnitude and the value of the determinant so far.
std::vector<Tensor> eliminated_column(std::span<const Tensor> states, const Tensor& j) {
  const Tensor& rows = states[0];
  const Tensor numbers = rows.graph().arange(rows.size(-2), i64);
  const Tensor sizes = where(numbers >= j, abs(gather(rows, j, -1)), -1);  // [.., n]
  const Tensor pivot = argmax(sizes, -1).unsqueeze(-1);
  const Tensor order = where(numbers == j, pivot, where(numbers == pivot, j, numbers));
  const Tensor swapped = take_along(rows, order.unsqueeze(-1).expand(rows.shape()), -2);
  const Tensor row = gather(swapped, j, -2), number = gather(row, j, -1);  // [.., n + k] and [..]
  // Without a pivot, all elements that would be eliminated are 0.
  const Tensor divisor = where(number == 0, 1, number);
  const Tensor unit = (row / divisor.unsqueeze(-1)).unsqueeze(-2);
  const Tensor is_row = (numbers == j).unsqueeze(-1);
  const Tensor next = where(is_row, unit, swapped - gather(swapped, j, -1).unsqueeze(-1) * unit);
  const Tensor turn = where(pivot.squeeze(-1) == j, number, -number);
  return {next, states[1] * sign(turn), states[2] + log(abs(number)), states[3] * turn};
}

}  // namespace

Eliminated eliminate(const OpCall& call, const Tensor& a, const Tensor& b) {
  if (a.rank() < 2 || a.size(-1).equals(a.size(-2)) == Dim::Answer::no || !is_float(a.dtype()))
    call.fail(fmt::format("the operand {} is no square matrix of floats", a.shape().to_string()), "import_operand");
  const Tensor matrices = a.to(f64);
  const Dim size = a.size(-1).unnamed();
  Shape batch;
  for (int i = 0; i + 2 < a.rank(); ++i) batch.push_back(a.size(i));
  const Graph graph = a.graph();
  const Tensor ones = graph.ones(batch, f64);
  const LoopResults loop =
      repeat(size, {b.is_empty() ? matrices : concat({matrices, b.to(f64)}, -1), ones, ones - ones, ones},
             [](std::span<const Tensor> states, const Tensor& j) { return LoopStep{eliminated_column(states, j)}; },
             {.name = "eliminate"});
  const Tensor &rows = loop.carries[0], &sign = loop.carries[1];
  Eliminated results{.solution = {},
                     .sign = sign.to(a.dtype()),
                     .log_magnitude = loop.carries[2].to(a.dtype()),
                     .determinant = loop.carries[3].to(a.dtype())};
  if (b.is_empty()) return results;
  const Tensor is_singular = (sign == 0).unsqueeze(-1).unsqueeze(-1);
  const Tensor solution = rows.slice(-1, size, rows.size(-1).unnamed());
  results.solution = where(is_singular, std::numeric_limits<double>::quiet_NaN(), solution).to(a.dtype());
  return results;
}

}  // namespace lathe::importing
