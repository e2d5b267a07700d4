#include "tools/train/step_options.h"

#include "tools/options/memory_budget.h"
#include "tools/options/target_option.h"
#include "tools/options/tune_option.h"

namespace lathe::tools {

CompileOptions compile_options(const StepOptions& step, const std::shared_ptr<Ranks>& ranks, ObjectStore* cache) {
  CompileOptions options = compile_options(step.target, ranks);
  options.threads = step.threads;
  options.cache = cache;
  options.lower = step.lower;
  options.lower.memory = memory_budget(step.memory_budget, {});
  options.tune = tune_options(step.tune, {});
  options.find_nan = step.find_nan;
  if (!ranks) return options;
  options.ranks = ranks;
  options.split = step.division.splits();
  options.parts = step.division.parts();
  return options;
}

}  // namespace lathe::tools
