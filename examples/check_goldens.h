#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <initializer_list>
#include <string>

#include "tests/support/programs/compiled_runner.h"

/// Check against golden files, which every example runs if it gets their folder.
namespace lathe::examples {

inline double worst_error(std::span<const golden::Comparison> comparisons) {
  double worst = 0;
  for (const golden::Comparison& c : comparisons) worst = std::max(worst, c.error);
  return worst;
}

/// Compares compiled code with the golden cases in f64 and f32, including training curves. Prints a line per case.
/// Returns whether all agree.
inline bool check_goldens(const std::string& folder, std::initializer_list<std::string> names) {
  golden::CompiledRunner runner;
  bool good = true;
  for (const std::string& name : names) {
    const golden::Case& which = golden::find_case(name);
    const golden::Files files = golden::load(folder, name);
    for (const DType dtype : {f64, f32}) {
      const golden::Tolerance& tolerance = dtype == f64 ? golden::f64_tolerance : golden::f32_tolerance;
      const auto values = golden::compare_values(which, files, runner, dtype, tolerance);
      const auto curves = golden::compare_training(which, files, runner, dtype, tolerance);
      const bool agrees = golden::all_good(values) && golden::all_good(curves);
      good = good && agrees;
      fmt::print("{:34} {}  {:3} tensors, worst error {:.2g}", name, lathe::name(dtype), values.size(),
                 worst_error(values));
      if (!curves.empty()) fmt::print("; training {:.2g}", worst_error(curves));
      fmt::print("  {}\n", agrees ? "ok" : "WRONG");
      if (!agrees) fmt::print("{}{}", golden::report(values), golden::report(curves));
    }
  }
  return good;
}

/// Runs `body` and prints a readable message for errors. Returns the exit status.
template <class Body>
int run_example(Body body) {
  try {
    return body() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace lathe::examples
