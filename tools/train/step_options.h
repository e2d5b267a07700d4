#pragma once

#include <memory>
#include <string>

#include "ir/options/lower_options.h"
#include "ir/support/object_store.h"
#include "runtime/compile.h"
#include "tools/options/division.h"

namespace lathe::tools {

/// Command-line options of a training step.
struct StepOptions {
  std::string target = "host";
  int threads = 0;
  LowerOptions lower = {};
  std::string memory_budget = {};  ///< in the format of --memory-budget; empty: none
  bool find_nan = false;           ///< see CompileOptions::find_nan
  double tune = 0;                 ///< seconds to tune the step (--tune); 0: no tuning
  Division division = {};          ///< distribution over processes
  ProcessOptions processes = {};
};

/// Advice of the commands against divergence.
inline constexpr const char* divergence_advice = "with a smaller --lr, a smaller --clip or more --warmup";

/// Returns the options of compile(). Sizes of the memory budget and of tuning are left empty.
CompileOptions compile_options(const StepOptions& step, const std::shared_ptr<Ranks>& ranks, ObjectStore* cache);

}  // namespace lathe::tools
