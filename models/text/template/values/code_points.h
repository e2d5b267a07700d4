#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// UTF-8 text indexed by code points, as in Python. Text must be valid unless a function says otherwise.
namespace lathe::jinja {

/// Returns the position of the first byte that is not valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// Returns the size in bytes of the code point that starts at `at`.
std::size_t code_point_size(std::string_view text, std::size_t at);
/// Returns the size in bytes of the code point that ends before `end`.
std::size_t code_point_size_before(std::string_view text, std::size_t end);
char32_t code_point_at(std::string_view text, std::size_t at);
void append_code_point(std::string& text, char32_t point);

std::int64_t count_code_points(std::string_view text);
/// Returns the byte offset of code point `index`; the text's size if `index` is the number of code points.
std::size_t byte_of_code_point(std::string_view text, std::int64_t index);

/// Returns whether Python's str.isspace and str.strip and Jinja's lexer treat the character as white space.
bool is_space(char32_t point);
/// Returns whether Python's str.splitlines ends a line at the character.
bool is_line_break(char32_t point);
/// Return `text` without white space at the start or at the end.
std::string_view strip_start(std::string_view text);
std::string_view strip_end(std::string_view text);

}  // namespace lathe::jinja
