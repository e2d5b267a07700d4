#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/template/values/object.h"

/// Python's functions on strings, as filters and methods share them. Counts below 0 are no limit.
namespace lathe::jinja {

enum class Sides : std::uint8_t { start, end, both };

/// Without the code points of `chars` at the ends; without white space where there are none.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Sides sides);
std::string replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t count = -1);

/// At white space, of which none is left, but for that at the end of the last part when the count is reached.
std::vector<std::string_view> split(std::string_view text, std::int64_t most);
std::vector<std::string_view> split(std::string_view text, std::string_view separator, std::int64_t most);
/// The same from the end.
std::vector<std::string_view> split_back(std::string_view text, std::int64_t most);
std::vector<std::string_view> split_back(std::string_view text, std::string_view separator, std::int64_t most);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

/// `text` in the middle of spaces (or of `fill`), at least `width` code points.
enum class Align : std::uint8_t { left, right, center };
std::string pad(Runtime& runtime, std::string_view text, std::int64_t width, Align align,
                std::string_view fill = " ");

/// Lines indented but for the first, where it is not asked for, and empty ones.
std::string indent(std::string_view text, std::string_view by, bool first, bool blank);

}  // namespace lathe::jinja
