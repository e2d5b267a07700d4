#pragma once

#include "ir/ops/functional/functional.h"

namespace lathe::ir {

/// A dim counted from the front. One out of range stays as it is, for the op's rule to refuse.
inline std::int64_t from_front(int dim, int rank) { return dim < 0 && dim >= -rank ? dim + rank : dim; }
inline std::int64_t from_front(const Value& a, int dim) { return from_front(dim, a.rank()); }

inline Value unary(const Op& op, const Value& a, Attributes attrs = {}) { return apply(op, {a}, std::move(attrs)); }

}  // namespace lathe::ir
