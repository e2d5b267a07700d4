#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/template/values/object.h"

/// Python's string functions, shared by filters and methods. Negative counts mean no limit.
namespace lathe::jinja {

/// Returns Python's int(text, base); nullopt if `text` is not a number. Accepts surrounding white space, a sign,
/// single underscores, and a prefix such as 0x if the base is 0 or matches. Throws Failure [template_limit] beyond 64
/// bits.
std::optional<std::int64_t> parse_integer(std::string_view text, std::int64_t base);
/// Returns Python's float(text); nullopt if `text` is not a number.
std::optional<double> parse_real(std::string_view text);

enum class Sides : std::uint8_t { start, end, both };

/// Strips the code points of `chars`, or white space if there is no `chars`.
std::string_view strip(std::string_view text, std::optional<std::string_view> chars, Sides sides);
std::string replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t count = -1);

/// Splits at white space, at most `most` times. The last part keeps white space only at its end, if the limit is
/// reached.
std::vector<std::string_view> split(std::string_view text, std::int64_t most);
std::vector<std::string_view> split(std::string_view text, std::string_view separator, std::int64_t most);
/// Split from the end.
std::vector<std::string_view> split_back(std::string_view text, std::int64_t most);
std::vector<std::string_view> split_back(std::string_view text, std::string_view separator, std::int64_t most);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

/// Pads `text` with `fill` to at least `width` code points.
enum class Align : std::uint8_t { left, right, center };
std::string pad(Runtime& runtime, std::string_view text, std::int64_t width, Align align,
                std::string_view fill = " ");

/// Indents all lines except empty ones unless `blank`, and the first one unless `first`.
std::string indent(std::string_view text, std::string_view by, bool first, bool blank);

}  // namespace lathe::jinja
