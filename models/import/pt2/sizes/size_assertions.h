#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/graph.h"
#include "models/import/imported_value.h"
#include "models/import/pt2/program/exported_program.h"

namespace lathe::pt2 {

/// Comparisons of sizes whose answer depends on the run. A program that asserts one of them gets a run-time check.
class SizeAssertions {
 public:
  /// Notes a node that compares two sizes, such as _operator.le.
  void note(const NodePart& node, const std::vector<importing::Value>& operands);

  /// Records the check of a node that asserts a noted comparison. Returns false for other nodes.
  bool record(const NodePart& node, const Location& location, const Graph& graph) const;

 private:
  struct Comparison {
    Dim left, right;
    ir::DimCheck::Relation relation = ir::DimCheck::Relation::equal;
  };
  std::map<std::string, Comparison, std::less<>> comparisons_;  ///< by the name of the result
};

}  // namespace lathe::pt2
