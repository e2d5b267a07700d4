#include "tests/support/tensors/check_results.h"

#include <catch2/catch.hpp>

namespace lathe::test {

void check_close(const Tensors& found, const Tensors& expected, double tolerance) {
  for (const auto& [name, value] : expected) {
    INFO(name);
    REQUIRE(found.count(name) == 1);
    const double error = error_of(found.at(name), value);
    if (error > tolerance)
      UNSCOPED_INFO("expected " << value.to_string() << "\nfound    " << found.at(name).to_string());
    CHECK(error <= tolerance);
  }
}

void check_same(const Outcome& found, const Outcome& expected, double tolerance) {
  CHECK(found.label == expected.label);
  if (found.label.empty() && expected.label.empty()) check_close(found.results, expected.results, tolerance);
}

}  // namespace lathe::test
