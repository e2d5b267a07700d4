#include "tests/support/tensors/compare_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ir/support/tensors/complex_elements.h"

namespace lathe::test {

using namespace ir;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

HostTensor random_tensor(DType dtype, std::vector<std::int64_t> sizes, std::int64_t top, std::mt19937& generator) {
  HostTensor result(dtype, std::move(sizes));
  std::uniform_real_distribution<double> real(-2, 2);
  std::uniform_int_distribution<std::int64_t> whole(0, dtype == boolean ? 1 : top);
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    if (is_complex(dtype))
      set_complex(result, i, {real(generator), real(generator)});
    else if (is_float(dtype))
      result.set(i, real(generator));
    else
      result.set_int(i, whole(generator));
  }
  return result;
}

/// Returns |a - b|; infinite if only one is NaN, or they are different infinities.
double difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? infinity : d;
}

}  // namespace

Tensors random_arguments(const Graph& graph, const DimBindings& dims, unsigned seed, std::int64_t top) {
  std::mt19937 generator(seed);
  Tensors result;
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    result.emplace(node.name, random_tensor(node.type.dtype, node.type.shape.evaluate(dims), top, generator));
  }
  return result;
}

double error_of(const HostTensor& found, const HostTensor& expected) {
  if (found.dtype() != expected.dtype() || found.shape() != expected.shape()) return infinity;
  double largest = 1, worst = 0;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    if (is_integer(expected.dtype()) || is_byte(expected.dtype())) {
      if (found.get_int(i) != expected.get_int(i)) return infinity;
      continue;
    }
    const auto x = get_complex(expected, i), y = get_complex(found, i);
    if (std::isfinite(std::abs(x))) largest = std::max(largest, std::abs(x));
    worst = std::max({worst, difference(x.real(), y.real()), difference(x.imag(), y.imag())});
  }
  return worst / largest;
}

bool same_bits(const HostTensor& a, const HostTensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

std::string to_string(const DimBindings& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, size);
  return text;
}

}  // namespace lathe::test
