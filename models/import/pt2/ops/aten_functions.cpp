#include "models/import/pt2/ops/aten_functions.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "frontend/ops/derived_ops.h"
#include "ir/tensor/op/op.h"
#include "models/import/ops/sizes/window_counts.h"

namespace lathe::pt2 {

namespace {

int kind_of(DType dtype) { return is_complex(dtype) ? 3 : is_float(dtype) ? 2 : dtype == boolean ? 0 : 1; }

/// Returns the dtype that holds the values of both. Throws for i8 and u8, which PyTorch computes in int16.
DType joined(const OpCall& call, DType a, DType b) {
  if (a == b) return a;
  const int x = kind_of(a), y = kind_of(b);
  if (x == 3 || y == 3) {
    const auto is_wide = [](DType dtype) { return dtype == f64 || dtype == c128; };
    return is_wide(a) || is_wide(b) ? c128 : c64;
  }
  if (x != y) return x > y ? a : b;
  if (x == 1 && size_in_bytes(a) == size_in_bytes(b))
    call.fail(fmt::format("{} and {} are computed in int16, which Lathe does not have", name(a), name(b)),
              "import_dtype", "convert one of the operands");
  if (x == 2 && size_in_bytes(a) == 2 && size_in_bytes(b) == 2) return f32;  // bf16 and f16
  return size_in_bytes(a) > size_in_bytes(b) ? a : b;
}

}  // namespace

DType promoted(const OpCall& call, std::initializer_list<std::size_t> operands) {
  return promoted(call, std::span(operands.begin(), operands.size()));
}

DType promoted(const OpCall& call, std::span<const std::size_t> operands) {
  // By priority: tensors with dims, tensors without, numbers.
  std::optional<DType> classes[3];
  for (const std::size_t i : operands) {
    if (!call.has(i)) continue;
    const bool is_number = call.is_number(i);
    DType dtype = call.dtype(i);
    if (is_number && is_float(dtype)) dtype = f32;  // PyTorch's default dtype
    std::optional<DType>& its = classes[is_number ? 2 : call.operand(i).rank() == 0 ? 1 : 0];
    its = its ? joined(call, *its, dtype) : dtype;
  }
  std::optional<DType> result;
  for (const std::optional<DType>& each : classes) {
    if (!each || (result && kind_of(*each) <= kind_of(*result))) continue;
    // A complex number takes the width of floats before it.
    result = result && kind_of(*each) == 3 ? joined(call, *result, *each) : *each;
  }
  return *result;
}

std::vector<Tensor> in_common_dtype(const OpCall& call) {
  std::vector<std::size_t> all(call.count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const DType dtype = promoted(call, all);
  std::vector<Tensor> tensors = call.tensors();
  for (Tensor& tensor : tensors) tensor = tensor.to(dtype);
  return tensors;
}

std::optional<Number> number_of(const OpCall& call, std::size_t i) {
  const HostTensor* const numbers = call.has(i) ? call.operand(i).constant() : nullptr;
  if (!numbers || numbers->numel() != 1 || is_complex(numbers->dtype())) return std::nullopt;
  return numbers->get_number(0);
}

Tensor operand_as(const OpCall& call, std::size_t i, DType dtype) {
  if (call.is_number(i) && !is_complex(dtype))
    if (const std::optional<Number> number = number_of(call, i); number && number->fits(dtype))
      return call.graph().constant(*number, dtype);
  if (is_complex(dtype) && !is_complex(call.dtype(i))) {
    const Tensor real = call.tensor(i).to(dtype == c128 ? f64 : f32);
    return view_as_complex(stack({real, zeros_like(real)}, -1));
  }
  return call.tensor(i).to(dtype);
}

double real_argument(const OpCall& call, std::string_view name, double fallback) {
  if (const auto* whole = call.find<std::int64_t>(name)) return static_cast<double>(*whole);
  return call.real(name, fallback);
}

DType dtype_argument(const OpCall& call, DType fallback) {
  if (!call.has("dtype")) return fallback;
  return dtype_of(call.integer("dtype"), call.node().location.place() + ": the argument dtype");
}

Ints axes_argument(const OpCall& call, std::string_view name, int rank) {
  Ints axes;
  if (const auto* one = call.find<std::int64_t>(name))
    axes = {*one};
  else if (call.has(name))
    axes = call.integers(name);
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  if (rank == 0) return {};  // dims 0 and -1 of a scalar are all of its dims
  return axes_from_front(call, std::move(axes), rank);
}

int axis_argument(const OpCall& call, int rank, std::string_view name) {
  return call.axis(call.integer(name), std::max(rank, 1));
}
int axis_argument(const OpCall& call, int rank, std::int64_t fallback) {
  return call.axis(call.integer("dim", fallback), std::max(rank, 1));
}

PerDim per_dim_argument(const OpCall& call, std::string_view name, std::int64_t fallback) {
  PerDim all = fallback;
  if (const auto* one = call.find<std::int64_t>(name)) all = *one;
  if (const auto* list = call.find<Ints>(name); list && !list->empty()) all.numbers = *list;
  // Some functions build an op for each element of a window.
  constexpr std::int64_t most = 1 << 14;
  for (const std::int64_t number : all.numbers)
    if (number < -1 || number > most)
      call.fail(fmt::format("the argument {} has the number {}; up to {} are supported", name, number, most),
                "import_attribute");
  return all;
}

std::string_view op_name(const Tensor& x) { return x.value().node().op->name; }

Tensor operand_of(const Tensor& x) { return Tensor(ir::Value(x.builder(), x.value().node().operands[0])); }

Tensor as_vector(const Tensor& x) {
  Shape shape;
  shape.push_back(x.shape().numel());
  return x.reshape(shape);
}

Ints inverse_order(const Ints& order) {
  Ints places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    places[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return places;
}

Tensor truth(const Tensor& x) {
  if (x.dtype() == boolean) return x;
  return (is_byte(x.dtype()) ? x.to(i32) : x) != 0;
}

void require_multiples(const OpCall& call, const Tensor& x, int spatial, const PerDim& stride) {
  const Ints& strides = stride.numbers;
  for (int i = 0; i < spatial && x.rank() >= spatial; ++i) {
    const std::size_t k = strides.size() == 1 ? 0 : static_cast<std::size_t>(i);
    const int dim = x.rank() - spatial + i;
    if (k < strides.size()) importing::require_multiple(call, dim, x.size(dim), strides[k]);
  }
}

}  // namespace lathe::pt2
