#include "passes/check/difference.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/support/tensors/complex_elements.h"

namespace lathe::ir {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

double apart(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::fabs(a - b);
  return std::isnan(d) ? infinite : d;
}

bool is_exact(DType dtype) { return is_integer(dtype) || is_byte(dtype) || dtype == boolean; }

std::string element(const HostTensor& tensor, std::int64_t i) {
  if (is_exact(tensor.dtype())) return fmt::format("{}", tensor.get_int(i));
  const std::complex<double> value = get_complex(tensor, i);
  return is_complex(tensor.dtype()) ? fmt::format("{}{:+}i", value.real(), value.imag())
                                    : fmt::format("{}", value.real());
}

}  // namespace

double element_difference(const HostTensor& a, const HostTensor& b, std::int64_t i) {
  if (is_exact(a.dtype()) && is_exact(b.dtype())) return a.get_int(i) == b.get_int(i) ? 0 : infinite;
  const std::complex<double> x = get_complex(a, i), y = get_complex(b, i);
  return std::max(apart(x.real(), y.real()), apart(x.imag(), y.imag()));
}

Difference difference(const HostTensor& a, const HostTensor& b, const std::vector<bool>& skipped) {
  if (a.shape() != b.shape()) return {infinite, 0};
  Difference found;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (!skipped.empty() && skipped[i]) continue;
    if (const double d = element_difference(a, b, i); d > found.largest) found = {d, i};
  }
  return found;
}

double largest_magnitude(const HostTensor& tensor) {
  double largest = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    if (const double size = std::abs(get_complex(tensor, i)); std::isfinite(size)) largest = std::max(largest, size);
  return largest;
}

std::string describe(const Difference& difference, const HostTensor& a, const HostTensor& b) {
  if (a.shape() != b.shape())
    return fmt::format("shape {} against {}", shape_to_string(a.shape()), shape_to_string(b.shape()));
  std::vector<std::int64_t> at(a.shape().size());
  std::int64_t rest = difference.at;
  for (std::size_t d = at.size(); d-- > 0; rest /= a.shape()[d]) at[d] = rest % a.shape()[d];
  return fmt::format("[{}]: {} against {}", fmt::join(at, ", "), element(a, difference.at),
                     element(b, difference.at));
}

}  // namespace lathe::ir
