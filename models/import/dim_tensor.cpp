#include "models/import/dim_tensor.h"

#include <algorithm>
#include <limits>

#include "frontend/ops/ops.h"

namespace lathe::importing {

namespace {

using Sizes = std::vector<std::int64_t>;

/// Returns the broadcast shape; nothing if the shapes do not fit.
std::optional<Sizes> broadcast(const Sizes& a, const Sizes& b) {
  Sizes shape(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

/// Returns the number of the element of an operand that broadcasts to the element at a position of the result.
std::size_t element_at(const Sizes& shape, const Sizes& position) {
  std::size_t element = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t index = shape[i] == 1 ? 0 : position[position.size() - shape.size() + i];
    element = element * static_cast<std::size_t>(shape[i]) + static_cast<std::size_t>(index);
  }
  return element;
}

}  // namespace

std::optional<HostTensor> DimTensor::numbers() const {
  if (std::ranges::any_of(elements, [](const Dim& dim) { return !dim.value(); })) return std::nullopt;
  HostTensor tensor(dtype, shape);
  for (std::size_t i = 0; i < elements.size(); ++i)
    tensor.set_int(static_cast<std::int64_t>(i), *elements[i].value());
  return tensor;
}

Tensor DimTensor::in(const Graph& graph) const {
  std::vector<Tensor> parts;
  for (const Dim& dim : elements) parts.push_back(graph.dim_value(dim, i64));
  const std::vector<Dim> sizes(shape.begin(), shape.end());
  return stack(parts, 0).view(Shape(sizes)).to(dtype);
}

std::optional<DimTensor> dim_tensor(const HostTensor& numbers) {
  const DType dtype = numbers.dtype();
  const bool is_whole = is_integer(dtype) || is_byte(dtype) || dtype == boolean;
  if (!is_whole || numbers.numel() > most_elements) return std::nullopt;
  DimTensor result{dtype, numbers.shape(), {}};
  for (std::int64_t i = 0; i < numbers.numel(); ++i) {
    if (numbers.get_int(i) == std::numeric_limits<std::int64_t>::min()) return std::nullopt;  // a dim cannot hold it
    result.elements.emplace_back(numbers.get_int(i));
  }
  return result;
}

Sign sign_of(const Dim& dim) {
  if (const auto number = dim.value())
    return *number < 0 ? Sign::negative : *number > 0 ? Sign::positive : Sign::zero;
  bool has_positive = false, has_negative = false;
  std::int64_t constant = 0;
  for (const Dim::Term& term : dim.terms()) {
    (term.coefficient > 0 ? has_positive : has_negative) = true;
    if (term.monomial.empty()) constant = term.coefficient;
  }
  if (has_positive && has_negative) return Sign::unknown;
  if (has_positive) return constant > 0 ? Sign::positive : Sign::not_negative;
  return constant < 0 ? Sign::negative : Sign::not_positive;
}

std::optional<DimTensor> combine(const DimTensor& a, const DimTensor& b, DType dtype, const CombineDims& function) {
  const std::optional<Sizes> shape = broadcast(a.shape, b.shape);
  if (!shape) return std::nullopt;
  const std::int64_t count = count_elements(*shape);
  if (count > most_elements) return std::nullopt;
  DimTensor result{dtype, *shape, {}};
  for (std::int64_t i = 0; i < count; ++i) {
    const Sizes position = position_of(*shape, i);
    std::optional<Dim> element =
        function(a.elements[element_at(a.shape, position)], b.elements[element_at(b.shape, position)]);
    if (!element) return std::nullopt;
    result.elements.push_back(*std::move(element));
  }
  return result;
}

}  // namespace lathe::importing
