#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// UTF-8 text indexed by code points, as in Python. Text must be valid unless a function says otherwise.
///
/// Character classes of Python's str.is..() methods.
///
/// Upper and lower case as in Python, except for letters whose other case is several letters (ligatures).
///
/// Text searches in linear time; the searches of std::string are quadratic in the worst case.
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

bool is_letter(char32_t point);
/// Decimal digits of any script.
bool is_decimal(char32_t point);
/// Decimal digits, superscripts, circled digits and similar digits.
bool is_digit(char32_t point);
bool is_letter_or_number(char32_t point);
/// Letters, numbers and the underscore: \w in Python's regular expressions.
bool is_word_character(char32_t point);
/// Characters that Python's repr(str) prints unescaped.
bool is_printable(char32_t point);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// Returns `text` with the first letter of each word in title case and all others in lower case. Words are runs of
/// letters.
std::string to_title(std::string_view text);
/// Returns `text` with the first letter in title case and all others in lower case.
std::string capitalize(std::string_view text);

/// Return whether there are cased letters and all of them are in this case.
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);
bool is_title(std::string_view text);

/// Returns the first position of `wanted` at or after `from`, or npos.
std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from = 0);
/// Returns the last position of `wanted`, or npos.
std::size_t find_last(std::string_view text, std::string_view wanted);

/// Returns the bytes in reverse order.
std::string reversed(std::string_view text);

}  // namespace lathe::jinja
