#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/support/dim.h"

namespace lathe {

/// The distinct sizes that a program needs. Binding the program's dims evaluates each size once and looks up each
/// unknown once.
class DimTable {
 public:
  /// Adds a size. Returns its position in the result of evaluate().
  std::size_t add(const Dim& dim);
  /// Computes the sizes under `bindings`, by position. Throws UserErrors of Dim::evaluate.
  void evaluate(const DimBindings& bindings, std::vector<std::int64_t>& values);

 private:
  /// A product of a coefficient and unknowns. A power is represented by repetition.
  struct Term {
    std::int64_t coefficient;
    std::vector<std::size_t> unknowns;
  };

  std::map<std::string, std::size_t> position_;  ///< by the text of the normal form
  std::vector<Dim> dims_;
  std::vector<std::vector<Term>> terms_;  ///< by position
  std::vector<std::string> unknowns_;
  std::vector<std::int64_t> bound_;  ///< by unknown
};

}  // namespace lathe
