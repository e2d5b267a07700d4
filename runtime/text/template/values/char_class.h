#pragma once

/// The classes of characters that Python's str.is..() ask for.
namespace lathe::jinja {

bool is_letter(char32_t point);
/// Decimal digits of any script.
bool is_decimal(char32_t point);
/// Also superscripts, circled digits and the like.
bool is_digit(char32_t point);
bool is_letter_or_number(char32_t point);
/// Letters, numbers and the underscore: \w of Python's regular expressions.
bool is_word_character(char32_t point);
/// Shown as it is by Python's repr(str).
bool is_printable(char32_t point);

}  // namespace lathe::jinja
