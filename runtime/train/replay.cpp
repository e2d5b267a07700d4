#include "runtime/train/replay.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "runtime/executable.h"

namespace lathe {

std::string fault_of_step(std::int64_t number, const UserError& error) {
  const std::string text = error.what();
  const std::size_t end = std::min(text.find("  [not_finite]"), text.size());
  return fmt::format("step {} is {}{}", number + 1, text.substr(0, end),
                     text.substr(std::min(text.find('\n'), text.size())));
}

std::string replay(const ReplayedSteps& steps) {
  CompileOptions options = steps.compile;
  options.find_nan = true;
  options.share_states = true;  // the run that diverged no longer updates them
  options.tune.reset();
  Executable executable = compile(steps.graph, options);
  Tensors outputs;
  for (std::int64_t step = steps.first; step < steps.last; ++step) {
    if (steps.stop && steps.stop()) return "";
    try {
      executable.run(steps.batches(step), outputs, steps.dims ? steps.dims(step) : DimBindings());
    } catch (const UserError& error) {
      if (error.label() != "not_finite") throw;
      return fault_of_step(step, error);
    }
  }
  return "";
}

}  // namespace lathe
