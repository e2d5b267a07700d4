#include "ir/options/pass_run.h"

#include <fmt/core.h>

namespace lathe {

std::string to_string(const std::vector<PassRun>& runs) {
  std::string text;
  for (const PassRun& run : runs)
    text += fmt::format("{:<20} {:8.2f} ms {:6} -> {}\n", run.name, run.seconds * 1e3, run.nodes_before,
                        run.result.empty() ? fmt::format("{} nodes", run.nodes_after) : run.result);
  return text;
}

}  // namespace lathe
