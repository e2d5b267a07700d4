#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/support/dim.h"

namespace lathe {

/// The distinct sizes that a program asks for, so that binding its dims evaluates each of them once.
class DimTable {
 public:
  /// The position of a size in what evaluate() gives.
  std::size_t add(const Dim& dim);
  /// The sizes under `bindings`, by position. UserErrors of Dim::evaluate.
  void evaluate(const DimBindings& bindings, std::vector<std::int64_t>& values) const;

 private:
  std::map<std::string, std::size_t> position_;  ///< by the text of the normal form
  std::vector<Dim> dims_;
};

}  // namespace lathe
