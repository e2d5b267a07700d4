#include <fmt/core.h>

#include "models/import/ops/sizes/range_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops that fill tensors.
namespace lathe::pt2 {

namespace {

constexpr DType default_dtype = f32;  // of PyTorch

/// Returns a shape filled with operand `i`, or with a number if it is not given.
Results filled(const OpCall& call, const Shape& shape, DType dtype, std::size_t i, double fallback) {
  if (!call.has(i)) return {call.graph().full(shape, fallback, dtype)};
  if (const std::optional<Number> number = number_of(call, i); number && number->fits(dtype))
    return {call.graph().full(shape, *number, dtype)};
  return {call.tensor(i).to(dtype).reshape({}).expand(shape)};
}

/// The dtype of a fill is that of its number.
Results full_op(const OpCall& call) {
  const DType number = call.dtype(1);
  const DType dtype = dtype_argument(call, is_float(number) ? default_dtype : number);
  return filled(call, Shape(call.dims(0, "the shape")), dtype, 1, 0);
}
Results full_like(const OpCall& call) {
  const Value& like = call.operand(0);
  return filled(call, like.shape(), dtype_argument(call, like.dtype()), 1, 0);
}
Results new_full(const OpCall& call) {
  return filled(call, Shape(call.dims(1, "the shape")), dtype_argument(call, call.dtype(0)), 2, 0);
}

/// Tensors of one number. Elements of `empty` have any value; here they are 0.
template <int number>
Results constant_fill(const OpCall& call) {
  return {call.graph().full(Shape(call.dims(0, "the shape")), number, dtype_argument(call, default_dtype))};
}
/// The order of dims in memory has no effect.
Results empty_permuted(const OpCall& call) {
  call.ignore({"physical_layout"});
  return constant_fill<0>(call);
}
template <int number>
Results constant_like(const OpCall& call) {
  const Value& like = call.operand(0);
  return {call.graph().full(like.shape(), number, dtype_argument(call, like.dtype()))};
}
template <int number>
Results constant_new(const OpCall& call) {
  return {call.graph().full(Shape(call.dims(1, "the shape")), number, dtype_argument(call, call.dtype(0)))};
}

Results fill(const OpCall& call) { return filled(call, call.operand(0).shape(), call.dtype(0), 1, 0); }

/// A number as a tensor without dims. A size stays a dim.
Results scalar_tensor(const OpCall& call) {
  const DType number = call.dtype(0);
  const DType dtype = dtype_argument(call, is_float(number) ? default_dtype : number);
  if (number == dtype) return {call.operand(0)};
  return {operand_as(call, 0, dtype)};
}

/// A range from `first`, 0 without it, to `last` by a step.
Results range(const OpCall& call, std::optional<std::size_t> first, std::size_t last, std::size_t step) {
  bool has_float = false;
  for (std::size_t i = 0; i < call.count(); ++i) has_float = has_float || is_float(call.dtype(i));
  const DType dtype = dtype_argument(call, has_float ? default_dtype : i64);
  if (!has_float) {
    const auto dim = [&](std::size_t i, std::string_view name) {
      const std::vector<Dim> dims = call.dims(i, name);
      if (dims.size() != 1) call.fail(fmt::format("{} has more than one element", name), "import_operand");
      return dims[0];
    };
    const Dim start = first ? dim(*first, "the start") : Dim(0), end = dim(last, "the end");
    const std::int64_t by = call.has(step) ? call.integer(step, "the step") : 1;
    return {importing::integer_range(call, start, end, by, i64).to(dtype)};
  }
  const auto real = [&](std::size_t i, std::string_view name) { return call.numbers(i, name).get(0); };
  const double start = first ? real(*first, "the start") : 0, by = call.has(step) ? real(step, "the step") : 1;
  return {importing::float_range(call, start, real(last, "the end"), by, dtype)};
}
Results range_to(const OpCall& call) { return range(call, std::nullopt, 0, 1); }
Results range_from(const OpCall& call) { return range(call, 0, 1, 2); }

Results eye_op(const OpCall& call) {
  const std::vector<Dim> n = call.dims(0, "n"), m = call.has(1) ? call.dims(1, "m") : n;
  if (n.size() != 1 || m.size() != 1) call.fail("n and m have one element each", "import_operand");
  const Tensor rows = call.graph().arange(n[0], i64).unsqueeze(1), columns = call.graph().arange(m[0], i64);
  return {(rows == columns).to(dtype_argument(call, default_dtype))};
}

/// Equal steps from start to end, both of which are elements, f64.
Tensor steps_between(const OpCall& call) {
  const double start = call.numbers(0, "start").get(0), end = call.numbers(1, "end").get(0);
  const std::int64_t steps = call.integer("steps");
  if (steps < 0) call.fail(fmt::format("{} steps", steps), "import_attribute");
  const double by = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  return call.graph().arange(steps, f64) * by + start;
}
Results linspace(const OpCall& call) { return {steps_between(call).to(dtype_argument(call, default_dtype))}; }
Results logspace(const OpCall& call) {
  const double base = real_argument(call, "base", 10);
  return {pow(base, steps_between(call)).to(dtype_argument(call, default_dtype))};
}

/// The rows and columns [2, n] of the elements of a triangle of a matrix, row by row.
Results triangle_indices(const OpCall& call, bool is_lower) {
  const std::int64_t rows = call.integer("row"), columns = call.integer("col"), offset = call.integer("offset", 0);
  constexpr std::int64_t most = 1 << 20;
  if (rows < 0 || columns < 0 || (rows > 0 && columns > most / rows))
    call.fail(
        fmt::format("a triangle of {} rows and {} columns; up to {} elements are supported", rows, columns, most),
        "import_attribute");
  Ints both[2];
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      if (is_lower ? j - i <= offset : j - i >= offset) both[0].push_back(i), both[1].push_back(j);
  const auto row = [&](const Ints& indices) {
    return importing::literal(call.graph(), importing::vector_of(indices, dtype_argument(call, i64)));
  };
  return {stack({row(both[0]), row(both[1])}, 0)};
}
Results lower_indices(const OpCall& call) { return triangle_indices(call, true); }
Results upper_indices(const OpCall& call) { return triangle_indices(call, false); }

}  // namespace

std::span<const OpRecord> aten_source_ops() {
  static constexpr OpRecord records[] = {
      aten("full", "size fill_value", "dtype", full_op),
      aten("full_like", "self fill_value", "dtype", full_like),
      aten("new_full", "self size fill_value", "dtype", new_full),
      aten("zeros", "size", "dtype", constant_fill<0>),
      aten("zeros_like", "self", "dtype", constant_like<0>),
      aten("zero", "self", "", constant_like<0>),
      aten("new_zeros", "self size", "dtype", constant_new<0>),
      aten("ones", "size", "dtype", constant_fill<1>),
      aten("ones_like", "self", "dtype", constant_like<1>),
      aten("new_ones", "self size", "dtype", constant_new<1>),
      aten("empty.memory_format", "size", "dtype", constant_fill<0>),
      aten("empty_permuted", "size", "physical_layout dtype", empty_permuted),
      aten("empty_like", "self", "dtype", constant_like<0>),
      aten("new_empty", "self size", "dtype", constant_new<0>),
      aten("fill.Scalar", "self value", "", fill),
      aten("fill.Tensor", "self value", "", fill),
      aten("scalar_tensor", "s", "dtype", scalar_tensor),
      aten("arange", "end", "dtype", range_to),
      aten("arange.start", "start end", "dtype", range_from),
      aten("arange.start_step", "start end step", "dtype", range_from),
      aten("eye", "n", "dtype", eye_op),
      aten("eye.m", "n m", "dtype", eye_op),
      aten("linspace", "start end", "steps dtype", linspace),
      aten("linspace.Tensor_Tensor", "start end", "steps dtype", linspace),
      aten("logspace", "start end", "steps base dtype", logspace),
      aten("tril_indices", "", "row col offset dtype", lower_indices),
      aten("triu_indices", "", "row col offset dtype", upper_indices),
  };
  return records;
}

}  // namespace lathe::pt2
