#include <catch2/catch.hpp>

#include "runtime/compile.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/kernels/long_sums.h"
#include "tests/support/tensors/compare_tensors.h"

/// Sums of many terms are accurate in every reduction schedule.
using namespace lathe;
using lathe::test::long_gemvs;
using lathe::test::long_sums;
using lathe::test::LongSum;

namespace {

using Term = std::function<double(std::int64_t)>;

/// Equal terms: every addition to a single accumulator would round in the same direction.
double tenth(std::int64_t) { return 0.1; }
double mixed(std::int64_t i) { return 0.3 + static_cast<double>(i * 7919 % 1013) / 1013; }

std::int64_t length_of(const LongSum& sum, std::int64_t elements) {
  for (const std::int64_t dim : sum.dims) elements /= dim == 0 ? 1 : dim;
  return elements;
}

void check(const LongSum& sum, std::int64_t elements, DType dtype, const Term& term, CompileOptions options) {
  const std::int64_t n = length_of(sum, elements);
  CAPTURE(sum.name, n, lathe::name(dtype), options.threads, options.sizes.size(), options.target.name);
  const Tensors arguments = sum.arguments(dtype, n, term);
  options.cache = test::shared_kernels();
  Executable executable = compile(sum.graph(dtype), options);
  CHECK(sum.error_of(executable.run(arguments), arguments) <= sum.tolerance);
}

}  // namespace

TEST_CASE("sums of a million terms have a relative error of at most one millionth") {
  std::vector<LongSum> all = long_sums();
  all.insert(all.end(), long_gemvs().begin(), long_gemvs().end());
  for (const LongSum& sum : all) {
    for (const char* target : {"x86-64-v2", "x86-64-v3"})
      check(sum, 1'000'000, f32, tenth, {.target = Target::named(target), .threads = 2});
    for (const DType dtype : {f32, bf16, f16}) check(sum, 1'000'000, dtype, tenth, {.threads = 2});
    check(sum, 1'000'000, f32, mixed, {.threads = 2});
    check(sum, 1'000'000, f32, tenth, {.sizes = {{"n", length_of(sum, 1'000'000)}}, .threads = 2});
  }
}

TEST_CASE("sums of any number of terms have a relative error of at most one millionth") {
  for (const LongSum& sum : long_sums())
    for (const std::int64_t n : {1, 7, 31, 32, 33, 129, 1'000, 1'025, 4'097, 70'001}) {
      const Tensors arguments = sum.arguments(f32, n, mixed);
      CAPTURE(sum.name, n);
      Executable executable = compile(sum.graph(f32), {.threads = 1, .cache = test::shared_kernels()});
      CHECK(sum.error_of(executable.run(arguments), arguments) <= sum.tolerance);
    }
}

TEST_CASE("products of one or two rows have a relative error of at most one millionth for any number of terms") {
  for (const LongSum& product : long_gemvs())
    for (const std::int64_t terms : {31, 512, 513, 1'000, 8'192, 8'193, 70'001})
      for (const bool known : {false, true}) {
        CompileOptions options{.threads = 2};
        if (known) options.sizes = {{"n", terms}};
        check(product, terms * (product.dims.size() == 1 ? 1 : std::max(product.dims[0], product.dims[1])), f32,
              tenth, options);
      }
}

TEST_CASE("long sums have the same bits on any number of threads") {
  for (const LongSum& sum : long_sums()) {
    CAPTURE(sum.name);
    const Tensors arguments = sum.arguments(f32, length_of(sum, 100'000), mixed);
    Executable one = compile(sum.graph(f32), {.threads = 1, .cache = test::shared_kernels()}),
               three = compile(sum.graph(f32), {.threads = 3, .cache = test::shared_kernels()});
    CHECK(test::same_bits(one.run(arguments).at("y"), three.run(arguments).at("y")));
  }
}

TEST_CASE("sums of 20 and 100 million terms have a relative error of at most one millionth", "[.long]") {
  for (const auto& sums : {long_sums(), long_gemvs()})
    for (const LongSum& sum : sums)
      for (const std::int64_t elements : {20'000'000, 100'000'000}) check(sum, elements, f32, tenth, {});
}
