#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/support/dim.h"
#include "ir/support/error.h"

namespace lathe::importing {

/// A dim of an input that must be a multiple of a number, such as the height of an image of a stride: only then a
/// quotient of sizes is a polynomial.
struct NeededMultiple {
  std::string dim;
  std::int64_t factor;
};

/// Returns the multiple that a dim must be so that `divisor` divides a term of a size; nothing if it divides all
/// terms but the constant already, or is below 2.
std::optional<NeededMultiple> needed_multiple(const Dim& size, std::int64_t divisor);

/// An error that does not occur if a dim is a multiple. The import can start again with such a dim.
class SizeMultiple : public UserError {
 public:
  SizeMultiple(const UserError& error, NeededMultiple needed) : UserError(error), needed_(std::move(needed)) {}

  const NeededMultiple& needed() const { return needed_; }

 private:
  NeededMultiple needed_;
};

/// Throws the error, as a SizeMultiple if `needed` is given.
[[noreturn]] void throw_size_error(const UserError& error, const std::optional<NeededMultiple>& needed);

}  // namespace lathe::importing
