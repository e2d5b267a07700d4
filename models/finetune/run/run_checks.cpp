#include "models/finetune/run/run_checks.h"

#include <fmt/core.h>

#include <cmath>

#include "ir/support/error.h"

namespace lathe {

void require_at_least(std::string_view option, std::int64_t number, std::int64_t least) {
  if (number < least)
    throw UserError(fmt::format("{} is {}", option, number), "train_options",
                    fmt::format("give a number of at least {}", least));
}

void require_finite(std::string_view option, double number) {
  if (!(number >= 0) || !std::isfinite(number))
    throw UserError(fmt::format("{} is {}", option, number), "train_options", "give a finite number of 0 or more");
}

void require_epochs(double epochs) {
  if (!(epochs > 0) || !std::isfinite(epochs))
    throw UserError(fmt::format("epochs is {}", epochs), "train_options", "give a number above 0");
}

void require_one_validation(const std::filesystem::path& file, double share) {
  if (!file.empty() && share != 0)
    throw UserError("both a file and a share of the data are given for validation", "finetune_valid",
                    "give valid or valid_share");
  if (!(share >= 0 && share < 1))
    throw UserError(fmt::format("valid_share {} is not a fraction", share), "finetune_valid",
                    "give a number above 0 and below 1, or a file");
}

}  // namespace lathe
