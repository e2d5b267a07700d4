#pragma once

#include <string>

/// Formats times and rates with three significant digits: "12.5 GB/s", "1.28 TFLOP/s", "3.40 us".
namespace lathe::shard {

std::string seconds_text(double seconds);
/// Returns a number of `unit` with a suitable prefix: "1.28 T" + unit.
std::string scaled_text(double number, const std::string& unit);

}  // namespace lathe::shard
