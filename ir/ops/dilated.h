#pragma once

#include <cstdint>

#include "ir/tensor/builder.h"

namespace lathe::ir {

/// Inserts step - 1 zeros after each element of dim d: [.., n, ..] -> [.., n * step, ..].
Value dilated(const Value& a, int d, std::int64_t step);

/// The same without the zeros after the last element: [.., n, ..] -> [.., (n - 1) * step + 1, ..].
Value spread(const Value& a, int d, std::int64_t step);

}  // namespace lathe::ir
