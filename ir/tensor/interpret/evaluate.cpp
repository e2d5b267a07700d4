#include "ir/tensor/interpret/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/support/tensors/complex_elements.h"

namespace lathe::ir {

namespace {

using Complex = std::complex<double>;

int normalized(std::int64_t axis, std::int64_t rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

/// Returns the strides to read `tensor` at the positions of a result that it broadcasts to.
Sizes broadcast_strides(const HostTensor& tensor, const Sizes& sizes) {
  const Sizes dense = dense_strides(tensor.shape());
  Sizes strides(sizes.size(), 0);
  const std::size_t lead = sizes.size() - dense.size();
  for (std::size_t d = 0; d < dense.size(); ++d)
    if (tensor.shape()[d] == sizes[lead + d]) strides[lead + d] = dense[d];
  return strides;
}

Walk broadcast_walk(OperandTensors operands, const Sizes& sizes) {
  std::vector<Sizes> strides;
  for (const HostTensor* operand : operands) strides.push_back(broadcast_strides(*operand, sizes));
  return Walk(sizes, std::move(strides));
}

/// Applies `f` to the operands' elements, accessed as T, at every position.
template <class T, class F>
HostTensor map_elements(const F& f, OperandTensors operands, const Sizes& sizes, DType result_dtype) {
  HostTensor result(result_dtype, sizes);
  std::array<T, 3> x{};
  std::int64_t at = 0;
  for (Walk walk = broadcast_walk(operands, sizes); !walk.done(); walk.next(), ++at) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto k = static_cast<std::int64_t>(walk.offset(i));
      if constexpr (std::is_same_v<T, Complex>)
        x[i] = get_complex(*operands[i], k);
      else if constexpr (std::is_same_v<T, std::int64_t>)
        x[i] = operands[i]->get_int(k);
      else
        x[i] = operands[i]->get(k);
    }
    const auto y = f(std::span<const T>(x.data(), operands.size()));
    if constexpr (std::is_same_v<T, Complex>) {
      if (is_complex(result_dtype))
        set_complex(result, at, y);
      else
        result.set(at, y.real());
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      result.set_int(at, y);
    } else {
      result.set(at, y);
    }
  }
  return result;
}

HostTensor evaluate_select(OperandTensors operands, const Sizes& sizes, DType held) {
  if (held == c128)
    return map_elements<Complex>([](std::span<const Complex> x) { return x[0] != 0.0 ? x[1] : x[2]; }, operands,
                                 sizes, held);
  if (held == f64)
    return map_elements<double>([](std::span<const double> x) { return x[0] != 0 ? x[1] : x[2]; }, operands, sizes,
                                held);
  return map_elements<std::int64_t>([](std::span<const std::int64_t> x) { return x[0] != 0 ? x[1] : x[2]; }, operands,
                                    sizes, held);
}

/// Converts directly to an integer dtype, because the conversion saturates at that dtype's limits. Converts i64 to
/// f64 by rounding to odd, so that narrowing to a smaller float later rounds once in total.
HostTensor evaluate_cast(DType dtype, DType held, const HostTensor& operand) {
  if (held == i64) return operand.cast(dtype).cast(held);
  if (held != f64 || dtype == f64 || operand.dtype() != i64) return operand.cast(held);
  HostTensor result(held, operand.shape());
  const auto from = operand.as<std::int64_t>();
  std::ranges::transform(from, result.as<double>().begin(), [](std::int64_t x) { return round_to_odd(x); });
  return result;
}

}  // namespace

DType evaluation_dtype(DType dtype) {
  if (is_float(dtype)) return f64;
  if (is_integer(dtype) || is_byte(dtype)) return i64;
  return is_complex(dtype) ? c128 : boolean;
}

HostTensor evaluate_elementwise(const Node& node, const Elementwise& meaning, OperandTensors operands,
                                const Sizes& sizes) {
  const DType held = evaluation_dtype(node.type.dtype);
  if (meaning.op == ScalarOp::select) return evaluate_select(operands, sizes, held);
  if (meaning.op == ScalarOp::cast) return evaluate_cast(node.type.dtype, held, *operands[0]);
  const ScalarOp op = meaning.op;
  const int bits = 8 * static_cast<int>(size_in_bytes(node.type.dtype));
  switch (operands[0]->dtype()) {
    case DType::i64:
      return map_elements<std::int64_t>([op, bits](auto x) { return integer_scalar(op, x, bits); }, operands, sizes,
                                        held);
    case DType::c128:
      return map_elements<Complex>([op](auto x) { return complex_scalar(op, x); }, operands, sizes, held);
    case DType::f64:
    case DType::boolean: return map_elements<double>(meaning.reference, operands, sizes, held);
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::c64: break;
  }
  throw InternalError("the interpreter holds values wide");
}

HostTensor evaluate_view(const Graph& graph, const Node& node, const View& meaning, const HostTensor& operand,
                         const Sizes& sizes, const DimBindings& bindings) {
  const IndexMap map = meaning.map(graph, node);
  if (map.reshape) return operand.reshaped(sizes);
  const Sizes dense = dense_strides(operand.shape());
  Sizes strides(sizes.size(), 0);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    const IndexMap::Component& component = map.components[i];
    start += component.offset.evaluate(bindings) * dense[i];
    component.each_term([&](int dim, std::int64_t scale) { strides[dim] += scale * dense[i]; });
  }
  HostTensor result(operand.dtype(), sizes);
  const std::size_t size = size_in_bytes(operand.dtype());
  std::byte* to = result.data();
  for (Walk walk(sizes, {strides}, {start}); !walk.done(); walk.next(), to += size)
    std::copy_n(operand.data() + walk.offset(0) * size, size, to);
  return result;
}

namespace {

template <class T>
T combine(ScalarOp op, T a, T b) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    const std::int64_t x[] = {a, b};
    return integer_scalar(op, x);
  } else if constexpr (std::is_same_v<T, Complex>) {
    const Complex x[] = {a, b};
    return complex_scalar(op, x);
  } else {
    if (op == ScalarOp::add) return a + b;
    if (op == ScalarOp::mul) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return op == ScalarOp::min ? std::min(a, b) : std::max(a, b);
  }
}

/// Returns the identity as an integer: infinities become the limits of the dtype.
std::int64_t integer_identity(double identity, DType dtype) {
  if (identity == std::numeric_limits<double>::infinity()) return integer_limits(dtype).highest;
  if (identity == -std::numeric_limits<double>::infinity()) return integer_limits(dtype).lowest;
  return static_cast<std::int64_t>(identity);
}

template <class T>
HostTensor fold(ScalarOp op, T identity, const HostTensor& operand, const Sizes& out_strides, const Sizes& sizes) {
  HostTensor result(operand.dtype(), sizes);
  const auto to = result.as<T>();
  std::fill(to.begin(), to.end(), identity);
  const auto from = operand.as<T>();
  std::size_t at = 0;
  for (Walk walk(operand.shape(), {out_strides}); !walk.done(); walk.next(), ++at)
    to[walk.offset(0)] = combine<T>(op, to[walk.offset(0)], from[at]);
  return result;
}

}  // namespace

HostTensor evaluate_reduce(const Node& node, const Reduce& meaning, const HostTensor& operand, const Sizes& sizes) {
  std::vector<bool> folded(operand.shape().size(), false);
  for (const std::int64_t d : node.attrs.get<std::vector<std::int64_t>>("dims"))
    folded[normalized(d, operand.rank())] = true;
  // Maps every position of the operand to one of the result, with stride 0 along reduced dims.
  const bool keepdim = node.attrs.get<bool>("keepdim");
  const Sizes dense = dense_strides(sizes);
  Sizes strides(folded.size(), 0);
  std::size_t out = 0;
  for (std::size_t d = 0; d < folded.size(); ++d) {
    if (!folded[d]) strides[d] = dense[out];
    if (!folded[d] || keepdim) ++out;
  }
  if (operand.dtype() == i64)
    return fold<std::int64_t>(meaning.combine, integer_identity(meaning.identity, node.type.dtype), operand, strides,
                              sizes);
  if (operand.dtype() == c128) return fold<Complex>(meaning.combine, meaning.identity, operand, strides, sizes);
  return fold<double>(meaning.combine, meaning.identity, operand, strides, sizes);
}

namespace {

/// Returns, for each label, the stride of the operand's dim with that label, or 0 if it has none.
Sizes label_strides(std::string_view wanted, std::string_view labels, const HostTensor& tensor) {
  const Sizes dense = dense_strides(tensor.shape());
  Sizes strides;
  for (const char c : wanted) {
    const auto at = labels.find(c);
    strides.push_back(at == std::string_view::npos ? 0 : dense[at]);
  }
  return strides;
}

template <class T>
HostTensor contract(const ContractionRoles& roles, const HostTensor& lhs, const HostTensor& rhs, const Sizes& sizes) {
  const std::string inner = roles.contracted();
  Sizes inner_sizes;
  for (const char c : inner) inner_sizes.push_back(lhs.shape()[roles.lhs.find(c)]);
  std::vector<Sizes> inner_strides = {label_strides(inner, roles.lhs, lhs), label_strides(inner, roles.rhs, rhs)};
  HostTensor result(lhs.dtype(), sizes);
  const auto a = lhs.as<T>(), b = rhs.as<T>();
  auto to = result.as<T>().begin();
  const auto multiply_add = [](T x, T y, T sum) {
    if constexpr (std::is_same_v<T, double>) return sum + x * y;
    return combine<T>(ScalarOp::add, sum, combine<T>(ScalarOp::mul, x, y));
  };
  // The last label has its own loop: most sums have no other.
  std::int64_t count = 1, step_a = 0, step_b = 0;
  if (!inner.empty()) {
    count = inner_sizes.back(), step_a = inner_strides[0].back(), step_b = inner_strides[1].back();
    inner_sizes.pop_back(), inner_strides[0].pop_back(), inner_strides[1].pop_back();
  }
  Walk outer(sizes, {label_strides(roles.out, roles.lhs, lhs), label_strides(roles.out, roles.rhs, rhs)});
  for (; !outer.done(); outer.next()) {
    T total{};
    Walk walk(inner_sizes, inner_strides,
              {static_cast<std::int64_t>(outer.offset(0)), static_cast<std::int64_t>(outer.offset(1))});
    for (; !walk.done(); walk.next()) {
      const T *x = a.data() + walk.offset(0), *y = b.data() + walk.offset(1);
      for (std::int64_t i = 0; i < count; ++i) total = multiply_add(x[i * step_a], y[i * step_b], total);
    }
    *to++ = total;
  }
  return result;
}

}  // namespace

HostTensor evaluate_contraction(const Node& node, const Contraction& meaning, const HostTensor& lhs,
                                const HostTensor& rhs, const Sizes& sizes) {
  const ContractionRoles roles = meaning.roles(node);
  if (lhs.dtype() == i64) return contract<std::int64_t>(roles, lhs, rhs, sizes);
  if (lhs.dtype() == c128) return contract<Complex>(roles, lhs, rhs, sizes);
  return contract<double>(roles, lhs, rhs, sizes);
}

}  // namespace lathe::ir
