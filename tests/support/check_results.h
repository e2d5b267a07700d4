#pragma once

#include "tests/support/compare_tensors.h"

/// Assertions about results.
namespace lathe::test {

/// Checks every expected tensor by error_of.
void check_close(const Tensors& found, const Tensors& expected, double tolerance);

/// Checks that both fail alike, or give the same results.
void check_same(const Outcome& found, const Outcome& expected, double tolerance);

}  // namespace lathe::test
