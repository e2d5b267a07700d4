#include "tools/compare_values.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <limits>

#include "ir/support/error.h"

namespace lathe::tools {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// |a - b|; 0 for equal infinities and two NaNs, infinite where only one is finite.
double apart(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? infinite : d;
}

std::string place(std::int64_t index, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> at(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= shape[i]) at[i] = index % shape[i];
  return fmt::format("[{}]", fmt::join(at, ", "));
}

}  // namespace

Distance distance(const HostTensor& got, const HostTensor& wanted) {
  if (got.shape() != wanted.shape())
    return {infinite,
            fmt::format("the shape is {}, not {}", shape_to_string(got.shape()), shape_to_string(wanted.shape()))};
  double squares = 0, norm = 0, most = -1;
  std::int64_t worst = 0;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const std::complex<double> a = got.get_complex(i), b = wanted.get_complex(i);
    const double d = std::hypot(apart(a.real(), b.real()), apart(a.imag(), b.imag()));
    if (d > most) {
      most = d;
      worst = i;
    }
    squares += d * d;
    if (const double size = std::abs(b); std::isfinite(size)) norm += size * size;
  }
  if (most <= 0) return {};
  const double error = norm > 0 ? std::sqrt(squares / norm) : std::sqrt(squares);
  const auto number = [](std::complex<double> v) {
    return v.imag() == 0 ? fmt::format("{}", v.real()) : fmt::format("{}{:+}i", v.real(), v.imag());
  };
  return {error, fmt::format("{}: {} against {}", place(worst, got.shape()), number(got.get_complex(worst)),
                             number(wanted.get_complex(worst)))};
}

double default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return 1e-10;
    case DType::f32:
    case DType::c64: return 2e-5;
    case DType::bf16: return 3e-2;
    case DType::f16: return 4e-3;
    case DType::i64:
    case DType::i32:
    case DType::boolean: return 0;
  }
  throw InternalError("a dtype out of range");
}

}  // namespace lathe::tools
