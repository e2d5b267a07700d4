#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/graph.h"
#include "passes/pipeline/pass_run.h"

namespace lathe::ir {

/// How passes run; names are those that `lathe opt --list` prints.
struct PipelineOptions {
  /// Called with the name of each pass (of stage_names()) and the graph after it; first with "input" and the graph as
  /// given.
  std::function<void(std::string_view pass, const Graph&)> dump_after = {};
  std::vector<std::string> disable = {};  ///< names of passes to leave out, each time that they run [pass_name]
  /// Where to write what `lathe opt` needs to repeat a failure: the names of the passes left to run and the text of
  /// the graph that went in. Empty: nowhere.
  std::string reproducer = {};
};

}  // namespace lathe::ir
