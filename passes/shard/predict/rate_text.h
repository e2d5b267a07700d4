#pragma once

#include <string>

/// Times and rates for people, with three digits that count: "12.5 GB/s", "1.28 TFLOP/s", "3.40 us".
namespace lathe::shard {

std::string seconds_text(double seconds);
/// A number of `unit` with the prefix that fits: "1.28 T" + unit.
std::string scaled_text(double number, const std::string& unit);

}  // namespace lathe::shard
