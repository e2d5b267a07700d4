#include <fmt/core.h>
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/support/goldens/golden.h"
#include "tests/support/programs/compiled_runner.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;

namespace {

/// Returns the largest error of the comparisons whose tensor name starts with `prefix`.
double worst(const std::vector<golden::Comparison>& found, std::string_view prefix) {
  double error = 0;
  for (const golden::Comparison& c : found)
    if (c.tensor.starts_with(prefix)) error = std::max(error, c.error);
  return error;
}

}  // namespace

// Prints the largest error of every golden case; run by name: test_runtime "golden table".
TEST_CASE("golden table", "[.table]") {
  const auto folder = test::test_data("goldens");
  fmt::print("| case | dtype | mid | out | grad | curve | after |\n|---|---|---|---|---|---|---|\n");
  for (const golden::Case& which : golden::cases()) {
    const auto files = golden::load(folder, which.name);
    for (const DType dtype : {f64, f32}) {
      golden::CompiledRunner runner;
      const auto& tolerance = dtype == f64 ? golden::f64_tolerance : golden::f32_tolerance;
      const auto values = golden::compare_values(which, files, runner, dtype, tolerance);
      const auto training = golden::compare_training(which, files, runner, dtype, tolerance);
      fmt::print("| {} | {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |\n", which.name, name(dtype),
                 worst(values, "mid."), worst(values, "out."), worst(values, "grad."), worst(training, "curve."),
                 worst(training, "after."));
      CHECK(golden::all_good(values));
      CHECK(golden::all_good(training));
    }
  }
}
