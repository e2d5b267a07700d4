#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/support/dim.h"

namespace lathe {

/// The distinct sizes that a program asks for, so that binding its dims evaluates each of them once, and looks each
/// unknown up once.
class DimTable {
 public:
  /// The position of a size in what evaluate() gives.
  std::size_t add(const Dim& dim);
  /// The sizes under `bindings`, by position. UserErrors of Dim::evaluate.
  void evaluate(const DimBindings& bindings, std::vector<std::int64_t>& values);

 private:
  /// A product of a number and unknowns, as often as they are multiplied.
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
