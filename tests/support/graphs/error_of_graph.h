#pragma once

#include <string>

#include "frontend/graph.h"
#include "ir/support/error.h"

namespace lathe::test {

/// Returns the text of the UserError that `build(graph)` throws, "no error" if it throws none.
template <class Build>
std::string error_of_graph(const Build& build) {
  Graph g{"wrong"};
  try {
    build(g);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lathe::test
