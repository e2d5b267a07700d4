#include "runtime/parameters/quantize.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/texts/error_label.h"

using namespace lathe;

namespace {

HostTensor random_matrix(std::int64_t rows, std::int64_t columns, DType dtype) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  HostTensor matrix(dtype, {rows, columns});
  for (std::int64_t i = 0; i < matrix.numel(); ++i) matrix.set(i, normal(random) * std::pow(10, i / 97 % 7 - 3));
  return matrix;
}

std::string label_of(const HostTensor& matrix, std::int64_t block) {
  return test::error_label([&] { (void)quantize(matrix, block); });
}

}  // namespace

TEST_CASE("quantize: every number is within half a scale, and the largest of a block is exact") {
  for (const DType dtype : {f64, f32, bf16, f16}) {
    const HostTensor matrix = random_matrix(9, 192, dtype);
    const QuantizedMatrix found = quantize(matrix, 64);
    CHECK(found.numbers.dtype() == i8);
    CHECK(found.numbers.shape() == std::vector<std::int64_t>{9, 192});
    CHECK(found.scales.dtype() == f32);
    CHECK(found.scales.shape() == std::vector<std::int64_t>{9, 3});
    for (std::int64_t b = 0; b < found.scales.numel(); ++b) {
      const double scale = found.scales.get(b);
      double most = 0;
      std::int64_t largest = 0;
      for (std::int64_t i = b * 64; i < b * 64 + 64; ++i) {
        const double x = matrix.get(i), q = found.numbers.get(i);
        REQUIRE(std::abs(x - q * scale) <= scale * 0.50001);
        most = std::max(most, std::abs(x));
        largest = std::max(largest, std::abs(found.numbers.get_int(i)));
      }
      REQUIRE(scale == Approx(most / 127).epsilon(1e-6));
      REQUIRE(largest == 127);
    }
  }
}

TEST_CASE("quantize: halves round to even") {
  const QuantizedMatrix found = quantize(HostTensor::from({1, 4}, {127, 0.5, 1.5, -2.5}), 4);
  const std::int64_t expected[] = {127, 0, 2, -2};
  for (std::int64_t i = 0; i < 4; ++i) CHECK(found.numbers.get_int(i) == expected[i]);
  CHECK(found.scales.get(0) == 1);
}

TEST_CASE("quantize: the transpose has columns as rows") {
  const HostTensor matrix = random_matrix(32, 5, bf16);
  HostTensor transposed(bf16, {5, 32});
  for (std::int64_t i = 0; i < 32; ++i)
    for (std::int64_t j = 0; j < 5; ++j) transposed.set(j * 32 + i, matrix.at({i, j}));
  const QuantizedMatrix found = quantize(matrix, 16, true), expected = quantize(transposed, 16);
  CHECK(found.numbers.same_bits(expected.numbers));
  CHECK(found.scales.same_bits(expected.scales));
}

TEST_CASE("quantize: zeros are kept, and invalid input is an error") {
  const QuantizedMatrix zeros = quantize(HostTensor(f32, {2, 8}), 8);
  for (std::int64_t i = 0; i < 16; ++i) CHECK(zeros.numbers.get_int(i) == 0);
  CHECK(zeros.scales.get(1) == 0);
  CHECK(label_of(HostTensor(f32, {2, 8}), 3) == "quantize_block");
  CHECK(label_of(HostTensor(f32, {2, 8}), 0) == "quantize_block");
  CHECK(label_of(HostTensor(f32, {8}), 8) == "quantize_block");
  CHECK(label_of(HostTensor(i64, {2, 8}), 8) == "quantize_block");
  CHECK(label_of(HostTensor::from({1, 2}, {1, std::nan("")}), 2) == "quantize_value");
  CHECK(label_of(HostTensor::from({1, 2}, {1, std::numeric_limits<double>::infinity()}), 2) == "quantize_value");
  CHECK(label_of(HostTensor(f32, {0, 8}), 8) == "");
}
