#include <catch2/catch.hpp>

#include "tests/support/kernels/long_sums.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"

/// Sums of many terms are accurate in every GPU schedule.
using namespace lathe;
using lathe::test::long_sums;
using lathe::test::LongSum;

TEST_CASE("long sums on a GPU have a relative error of at most one millionth") {
  const auto tenth = [](std::int64_t) { return 0.1; };
  for (const LongSum& sum : long_sums()) {
    std::int64_t n = 60'000;
    for (const std::int64_t dim : sum.dims) n /= dim == 0 ? 1 : dim;
    CAPTURE(sum.name, n);
    const Tensors arguments = sum.arguments(f32, n, tenth);
    const test::ProgramInterpreter program(sum.graph(f32), lower_gpu);
    CHECK(sum.error_of(program.run(arguments), arguments) <= sum.tolerance);
  }
}
