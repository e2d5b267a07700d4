#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/support/dim.h"
#include "models/import/size_multiple.h"

namespace lathe::importing {

/// The named dims of a model's inputs. Some are numbers that the caller chose, others multiples: "height" is
/// 8*height_div_8.
class InputDims {
 public:
  /// `sizes` take the place of the names.
  explicit InputDims(DimBindings sizes) : fixed_(std::move(sizes)) {}

  /// Makes a dim a larger multiple. Returns false if there is a limit to it.
  bool add(const NeededMultiple& needed);
  /// Returns a size of an input with these dims. Its dims may become multiples later.
  Dim apply(const Dim& size);
  /// Throws UserError [dim_unknown] if no input of `file` has a chosen size. Must be called after all inputs.
  void check_sizes(const std::string& file) const;

 private:
  DimBindings fixed_;
  std::map<std::string, std::int64_t, std::less<>> factors_;  ///< by the name in the file
  std::map<std::string, std::string, std::less<>> names_;     ///< names in the file by those of their parts
  std::set<std::string, std::less<>> sizes_;                  ///< all names of dims of inputs
};

/// Imports with the numbers `sizes` in place of names, and with larger multiples until `import` throws no
/// SizeMultiple, or one that no size of an input can satisfy. Sizes that strides must divide are found on the way:
/// each import ends at the first one.
auto with_input_dims(const DimBindings& sizes, const auto& import) {
  for (InputDims dims(sizes);;) {
    try {
      return import(dims);
    } catch (const SizeMultiple& error) {
      if (!dims.add(error.needed())) throw;
    }
  }
}

}  // namespace lathe::importing
