#include "tests/codegen/harness.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "ir/kernel/interpret/interpreter_memory.h"

namespace lathe::testing {

namespace {

constexpr double huge = 1e300;

/// Maps floats of a format to integers in the same order.
std::int64_t ordered(DType dtype, const std::byte* at) {
  std::int64_t bits = 0;
  std::memcpy(&bits, at, size_in_bytes(dtype));
  const int width = static_cast<int>(8 * size_in_bytes(dtype));
  const std::int64_t sign = std::int64_t{1} << (width - 1);
  if (width == 64) return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
  return (bits & sign) ? -(bits & (sign - 1)) : bits;
}

std::vector<double> float_cases() {
  const double inf = std::numeric_limits<double>::infinity();
  return {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, inf, -inf, NAN, 1e-40, -1e-42, 1e-38, 3e38, -3e38,
          1e10, -1e10, 65504.0, 65520.0, 65519.0, 6e-8, 3e-8, 6.1e-5, 88.5, -87.5, -103.9, 0.625, 0.92, 4.1, -9.5,
          2147483648.0, -2147483649.0, 9.3e18, 100.25, 1.0009765625, 1.00390625, 1.01171875,
          // Close to ties of bf16 and f16, to which f32 rounds them.
          1.0039062500009095, 4.5917748124e-41, 3.3961775e38, -1.0004882812509095, 2.9802322417e-08, 65519.999999999,
          1e300};
}

}  // namespace

Data samples(DType dtype, std::int64_t count, std::uint64_t seed) {
  Data data(dtype, count);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 4);
  const std::vector<double> floats = float_cases();
  const std::int64_t integers[] = {0,
                                   1,
                                   -1,
                                   2,
                                   7,
                                   -7,
                                   31,
                                   32,
                                   33,
                                   63,
                                   64,
                                   65,
                                   std::numeric_limits<std::int32_t>::min(),
                                   std::numeric_limits<std::int32_t>::max(),
                                   std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max(),
                                   1000003,
                                   0x1010001,
                                   (std::int64_t{1} << 60) + (std::int64_t{1} << 52) + 1,
                                   -(std::int64_t{1} << 60) - (std::int64_t{1} << 49) - 1,
                                   (std::int64_t{1} << 53) + 1,
                                   -12345678901};
  for (std::int64_t i = 0; i < count; ++i) {
    kernel::Scalar value;
    const bool edge = random() % 2 == 0;
    if (is_float(dtype))
      value.real = edge ? floats[random() % floats.size()] : normal(random);
    else if (dtype == boolean)
      value.integer = static_cast<std::int64_t>(random() % 2);
    else
      value.integer =
          edge ? integers[random() % std::size(integers)] : static_cast<std::int64_t>(random() % 2001) - 1000;
    kernel::write_element(dtype, &data.bytes[static_cast<std::size_t>(i) * size_in_bytes(dtype)], value);
  }
  return data;
}

Outcome run_interpreter(const kernel::Kernel& kernel, std::vector<Data> buffers,
                        const std::vector<std::int64_t>& dims) {
  std::vector<kernel::BoundBuffer> bound;
  for (Data& data : buffers) bound.push_back({data.bytes.data(), data.count()});
  const std::int64_t status = kernel::interpret(kernel, bound, dims);
  return {std::move(buffers), status};
}

Outcome run_compiled(const codegen::CompiledKernel& code, std::vector<Data> buffers,
                     const std::vector<std::int64_t>& dims, std::int64_t chunk) {
  std::vector<void*> pointers;
  for (Data& data : buffers) pointers.push_back(data.bytes.data());
  const std::int64_t extent = code.extent(dims.data());
  std::int64_t status = 0;
  if (chunk == 0) chunk = std::max<std::int64_t>(extent, 1);
  for (std::int64_t begin = 0; begin < extent; begin += chunk)
    code.run(pointers.data(), dims.data(), begin, std::min(begin + chunk, extent), &status);
  return {std::move(buffers), status};
}

double distance(DType dtype, const std::byte* a, const std::byte* b) {
  const kernel::Scalar x = kernel::read_element(dtype, a), y = kernel::read_element(dtype, b);
  if (!is_float(dtype)) return x.integer == y.integer ? 0 : huge;
  if (std::isnan(x.real) || std::isnan(y.real)) return std::isnan(x.real) && std::isnan(y.real) ? 0 : huge;
  if (std::isinf(x.real) != std::isinf(y.real) && std::signbit(x.real) != std::signbit(y.real)) return huge;
  if (x.real == 0 && y.real == 0) return std::signbit(x.real) == std::signbit(y.real) ? 0 : 0.5;
  return std::abs(static_cast<double>(ordered(dtype, a)) - static_cast<double>(ordered(dtype, b)));
}

void require_close(const Data& actual, const Data& expected, double ulps, const std::string& what) {
  REQUIRE(actual.bytes.size() == expected.bytes.size());
  const std::size_t size = size_in_bytes(actual.dtype);
  for (std::size_t i = 0; i < actual.bytes.size(); i += size) {
    const double d = distance(actual.dtype, &actual.bytes[i], &expected.bytes[i]);
    if (d <= ulps) continue;
    const kernel::Scalar a = kernel::read_element(actual.dtype, &actual.bytes[i]);
    const kernel::Scalar e = kernel::read_element(actual.dtype, &expected.bytes[i]);
    FAIL(fmt::format("{}: element {} is {} / {}, expected {} / {} ({} ulp)", what, i / size, a.real, a.integer,
                     e.real, e.integer, d));
  }
}

Outcome compare(const kernel::Kernel& kernel, const std::vector<Data>& buffers, const std::vector<std::int64_t>& dims,
                double ulps) {
  const Outcome expected = run_interpreter(kernel, buffers, dims);
  const codegen::CompiledKernels code = codegen::Jit().compile({&kernel, 1});
  for (const std::int64_t chunk : {0, 1, 3}) {
    const Outcome actual = run_compiled(code[0], buffers, dims, chunk);
    CHECK(actual.status == expected.status);
    for (std::size_t i = 0; i < buffers.size(); ++i)
      require_close(actual.buffers[i], expected.buffers[i], ulps, fmt::format("{}, buffer {}", kernel.name, i));
  }
  CHECK(kernel::extent(kernel, dims) == code[0].extent(dims.data()));
  return expected;
}

}  // namespace lathe::testing
