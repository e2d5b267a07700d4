#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// UTF-8 text by code points, as Python counts. Text is valid but where a function says otherwise.
namespace lathe::jinja {

/// The position of the first byte that is not valid UTF-8; npos where there is none.
std::size_t find_invalid_utf8(std::string_view text);

/// Bytes of the code point that starts at `at`.
std::size_t code_point_size(std::string_view text, std::size_t at);
/// Bytes of the code point that ends before `end`.
std::size_t code_point_size_before(std::string_view text, std::size_t end);
char32_t code_point_at(std::string_view text, std::size_t at);
void append_code_point(std::string& text, char32_t point);

std::int64_t count_code_points(std::string_view text);
/// The byte where code point `index` starts; the end of the text for its length.
std::size_t byte_of_code_point(std::string_view text, std::int64_t index);

/// What Python's str.isspace, str.strip and the lexer of Jinja call white space.
bool is_space(char32_t point);
/// Where Python's str.splitlines ends a line.
bool is_line_break(char32_t point);
/// Without white space at the start, at the end.
std::string_view strip_start(std::string_view text);
std::string_view strip_end(std::string_view text);

}  // namespace lathe::jinja
