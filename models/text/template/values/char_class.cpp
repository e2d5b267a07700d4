#include "models/text/template/values/char_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace lathe::jinja {

namespace {

utf8proc_category_t category(char32_t point) { return utf8proc_category(static_cast<utf8proc_int32_t>(point)); }

bool is_number(char32_t point) {
  const auto kind = category(point);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

}  // namespace

bool is_letter(char32_t point) {
  const auto kind = category(point);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t point) { return category(point) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t point) {
  // Code points with Unicode's Numeric_Type=Digit.
  static constexpr std::pair<char32_t, char32_t> others[] = {
      {0xb2, 0xb3},     {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},   {0x2070, 0x2070},
      {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247c},   {0x2488, 0x2490},
      {0x24ea, 0x24ea}, {0x24f5, 0x24fd},   {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},
      {0x278a, 0x2792}, {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
  return is_decimal(point) || std::any_of(std::begin(others), std::end(others), [&](const auto& range) {
           return point >= range.first && point <= range.second;
         });
}

bool is_letter_or_number(char32_t point) { return is_letter(point) || is_number(point); }
bool is_word_character(char32_t point) { return point == '_' || is_letter_or_number(point); }

bool is_printable(char32_t point) {
  if (point < 0x80) return point >= 0x20 && point < 0x7f;
  switch (category(point)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO: return false;
    default: return true;
  }
}

}  // namespace lathe::jinja
