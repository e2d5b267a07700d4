#pragma once

#include <cstdint>
#include <limits>

namespace CLI {
class Option;
}

/// Checks of numeric options. What is no number of the kind, or lies out of its range, is refused by plain words and
/// the status of wrong usage: "--batch is 0; it must be a whole number from 1 to 16777216". Each returns its option.
namespace lathe::tools {

/// The largest size of a dim, and the most steps, that an option may ask for.
inline constexpr std::int64_t most_size = std::int64_t{1} << 24, most_steps = 1'000'000'000;

/// A whole number.
CLI::Option* at_least(CLI::Option* option, std::int64_t least);
CLI::Option* between(CLI::Option* option, std::int64_t least, std::int64_t most);
/// A seed of 64 bits.
CLI::Option* seed(CLI::Option* option);

/// A finite number, whole or not.
CLI::Option* positive(CLI::Option* option, double most = std::numeric_limits<double>::max());
CLI::Option* not_negative(CLI::Option* option);
CLI::Option* real_between(CLI::Option* option, double least, double most);

}  // namespace lathe::tools
