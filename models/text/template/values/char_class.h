#pragma once

/// Character classes of Python's str.is..() methods.
namespace lathe::jinja {

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

}  // namespace lathe::jinja
