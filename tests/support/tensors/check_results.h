#pragma once

#include "tests/support/tensors/compare_tensors.h"

/// Assertions about results.
namespace lathe::test {

/// Checks the error_of every expected tensor.
void check_close(const Tensors& found, const Tensors& expected, double tolerance);

/// Checks that both fail with the same error, or have the same results.
void check_same(const Outcome& found, const Outcome& expected, double tolerance);

}  // namespace lathe::test
