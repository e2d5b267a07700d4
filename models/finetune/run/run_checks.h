#pragma once

#include <cstdint>
#include <string_view>

/// Checks of the options of training runs.
namespace lathe {

/// Throws UserError [train_options] for a number below `least`.
void require_at_least(std::string_view option, std::int64_t number, std::int64_t least);
/// Throws UserError [train_options] for a number that is negative, infinite or NaN.
void require_finite(std::string_view option, double number);

}  // namespace lathe
