#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "frontend/graph.h"

namespace lathe::test {

/// A program that violates one rule in its last line.
struct DslError {
  int line;                ///< line of the invalid op in dsl_errors_table.cpp
  std::string_view label;  ///< the rule
  std::string_view says;   ///< part of the text: names and numbers that a user needs
  std::function<void(Graph&)> build;
};
const std::vector<DslError>& dsl_errors();

}  // namespace lathe::test
