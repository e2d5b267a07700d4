#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/support/dim.h"
#include "ir/support/error.h"

namespace lathe::importing {

/// An error for a size that must be a multiple of a number, such as the height of an image of a stride: otherwise the
/// number of windows is no polynomial of sizes. The import can start again with such a size.
class SizeMultiple : public UserError {
 public:
  SizeMultiple(const UserError& error, std::string dim, std::int64_t factor)
      : UserError(error), dim_(std::move(dim)), factor_(factor) {}

  const std::string& dim() const { return dim_; }
  std::int64_t factor() const { return factor_; }

 private:
  std::string dim_;
  std::int64_t factor_;
};

/// Dims of a model's inputs that are multiples: "height" is 8*height_div_8.
class DimMultiples {
 public:
  /// Makes a dim a larger multiple. Returns false if there is a limit to it.
  bool add(const SizeMultiple& needed);
  /// Returns a size of an input with these dims. Its dims may become multiples later.
  Dim apply(const Dim& size);

 private:
  std::map<std::string, std::int64_t, std::less<>> factors_;  ///< by the name in the file
  std::map<std::string, std::string, std::less<>> names_;     ///< names in the file by those of their parts
  std::set<std::string, std::less<>> sizes_;                  ///< all names of dims of inputs
};

/// Imports with larger multiples until `import` throws no SizeMultiple, or one that no size of an input can satisfy.
/// Sizes that strides must divide are found on the way: each import ends at the first one.
auto with_multiples(const auto& import) {
  for (DimMultiples multiples;;) {
    try {
      return import(multiples);
    } catch (const SizeMultiple& needed) {
      if (!multiples.add(needed)) throw;
    }
  }
}

}  // namespace lathe::importing
