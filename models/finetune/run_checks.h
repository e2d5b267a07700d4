#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/compile.h"
#include "runtime/train/run_settings.h"

/// Checks of the options of training runs.
namespace lathe {

/// Throws UserError [train_options] for a number below `least`.
void require_at_least(std::string_view option, std::int64_t number, std::int64_t least);
/// Throws UserError [train_options] for a number that is negative, infinite or NaN.
void require_finite(std::string_view option, double number);

/// Throws UserError [train_options] for options of compile() that the run sets itself.
void check_step_options(const CompileOptions& options);

/// Returns whether this process reads and writes files: it is the only process, or rank 0.
bool is_first_rank(const std::shared_ptr<Ranks>& ranks);
/// Throws UserError [ranks_differ] if processes were started with different settings. Must be called by all ranks,
/// with equal setting names. `ranks` may be null.
void require_same_settings(const std::shared_ptr<Ranks>& ranks, const std::vector<Settings>& settings);

}  // namespace lathe
