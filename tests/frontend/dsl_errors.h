#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "frontend/graph.h"

namespace lathe::test {

/// A program that breaks one rule on its last line.
struct DslError {
  int line;                ///< of the op that is wrong, in dsl_errors_table.cpp
  std::string_view label;  ///< the rule
  std::string_view says;   ///< part of the text: names and numbers that the reader needs
  std::function<void(Graph&)> build;
};
const std::vector<DslError>& dsl_errors();

}  // namespace lathe::test
