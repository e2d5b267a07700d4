#pragma once

#include <string>
#include <vector>

namespace lathe {

/// A record of one pass or other compilation stage that ran.
struct PassRun {
  std::string name;  ///< its label: "canonicalize.2" for the second run of a pass
  double seconds = 0;
  int nodes_before = 0, nodes_after = 0;
  std::string result = {};  ///< output of a stage that does not return a graph: "12 regions"
};

/// Prints one line per pass: "canonicalize       0.4 ms   120 -> 98 nodes".
std::string to_string(const std::vector<PassRun>& runs);

}  // namespace lathe
