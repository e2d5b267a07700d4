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

}  // namespace lathe
