#pragma once

#include <cstdint>
#include <limits>

namespace CLI {
class Option;
}

/// Checks of numeric options. A value of the wrong type or out of range is a usage error with a plain message:
/// "--batch is 0; it must be a whole number from 1 to 16777216". Each function returns its option.
namespace lathe::tools {

/// Upper limits for dims and for numbers of steps.
inline constexpr std::int64_t most_size = std::int64_t{1} << 24, most_steps = 1'000'000'000;

/// Accepts integers.
CLI::Option* at_least(CLI::Option* option, std::int64_t least);
CLI::Option* between(CLI::Option* option, std::int64_t least, std::int64_t most);
/// Accepts a 64-bit seed.
CLI::Option* seed(CLI::Option* option);

/// Accepts finite numbers, including fractions.
CLI::Option* positive(CLI::Option* option, double most = std::numeric_limits<double>::max());
CLI::Option* not_negative(CLI::Option* option);
CLI::Option* real_between(CLI::Option* option, double least, double most);

}  // namespace lathe::tools
