#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::ir {
struct Graph;
}

namespace lathe {

/// Options for running passes. Names of passes are those of `lathe opt --list`.
struct PipelineOptions {
  /// Called with the name of each pass (of stage_names()) and the graph after it. The first call has the name "input"
  /// and the input graph.
  std::function<void(std::string_view pass, const ir::Graph&)> dump_after = {};
  std::vector<std::string> disable = {};  ///< names of passes to skip, in all their runs [pass_name]
  /// File for reproducing a failure with `lathe opt`: the names of the remaining passes and the text of the graph
  /// before the failing pass. Empty: no file.
  std::string reproducer = {};
};

}  // namespace lathe
