#pragma once

#include <string>
#include <vector>

namespace lathe::ir {

/// One pass, or another stage of compilation, as it ran.
struct PassRun {
  std::string name;  ///< its label: "canonicalize.2" for the second run of a pass
  double seconds = 0;
  int nodes_before = 0, nodes_after = 0;
  std::string result = {};  ///< what a stage made that gives no graph: "12 regions"
};

/// "canonicalize       0.4 ms   120 -> 98 nodes", a line a pass.
std::string to_string(const std::vector<PassRun>& runs);

}  // namespace lathe::ir
