#include "models/text/template/values/code_points.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace lathe::jinja {

namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0u) == 0x80u; }

/// Returns the size of a code point by its first byte; 0 if the byte starts none.
std::size_t size_by_lead(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xc2) return 0;
  if (byte < 0xe0) return 2;
  if (byte < 0xf0) return 3;
  return byte < 0xf5 ? 4 : 0;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = size_by_lead(text[at]);
    if (size == 0 || at + size > text.size()) return at;
    for (std::size_t i = 1; i < size; ++i)
      if (!continues(text[at + i])) return at;
    const char32_t point = code_point_at(text, at);
    const bool too_long = (size == 3 && point < 0x800) || (size == 4 && point < 0x10000);
    if (too_long || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return at;
    at += size;
  }
  return std::string_view::npos;
}

std::size_t code_point_size(std::string_view text, std::size_t at) { return size_by_lead(text[at]); }

std::size_t code_point_size_before(std::string_view text, std::size_t end) {
  std::size_t size = 1;
  while (continues(text[end - size])) ++size;
  return size;
}

char32_t code_point_at(std::string_view text, std::size_t at) {
  const std::size_t size = size_by_lead(text[at]);
  const auto lead = static_cast<unsigned char>(text[at]);
  if (size == 1) return lead;
  char32_t point = lead & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) point = (point << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
  return point;
}

void append_code_point(std::string& text, char32_t point) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | (point >> 6));
  } else if (point < 0x10000) {
    put(0xe0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3f));
  } else {
    put(0xf0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3f));
    put(0x80 | ((point >> 6) & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

std::int64_t count_code_points(std::string_view text) {
  std::int64_t count = 0;
  for (const char c : text) count += !continues(c);
  return count;
}

std::size_t byte_of_code_point(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += code_point_size(text, at);
  return at;
}

bool is_space(char32_t point) {
  if (point < 0x80) return (point >= 0x09 && point <= 0x0d) || (point >= 0x1c && point <= 0x20);
  return point == 0x85 || point == 0xa0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200a) ||
         point == 0x2028 || point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

bool is_line_break(char32_t point) {
  return (point >= 0x0a && point <= 0x0d) || (point >= 0x1c && point <= 0x1e) || point == 0x85 || point == 0x2028 ||
         point == 0x2029;
}

std::string_view strip_start(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_space(code_point_at(text, at))) at += code_point_size(text, at);
  return text.substr(at);
}

std::string_view strip_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t size = code_point_size_before(text, end);
    if (!is_space(code_point_at(text, end - size))) break;
    end -= size;
  }
  return text.substr(0, end);
}

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

namespace {

enum class Case : std::uint8_t { none, lower, upper, title };

constexpr char32_t sharp_s = 0xdf;  // the one common letter whose upper case is two letters

utf8proc_int32_t number(char32_t point) { return static_cast<utf8proc_int32_t>(point); }

Case case_of(char32_t point) {
  switch (utf8proc_category(number(point))) {
    case UTF8PROC_CATEGORY_LU: return Case::upper;
    case UTF8PROC_CATEGORY_LL: return Case::lower;
    case UTF8PROC_CATEGORY_LT: return Case::title;
    default: return Case::none;
  }
}

void append_upper(std::string& text, char32_t point) {
  if (point == sharp_s)
    text += "SS";
  else
    append_code_point(text, static_cast<char32_t>(utf8proc_toupper(number(point))));
}

void append_title(std::string& text, char32_t point) {
  if (point == sharp_s)
    text += "Ss";
  else
    append_code_point(text, static_cast<char32_t>(utf8proc_totitle(number(point))));
}

/// Returns whether a character between letters does not end a word (Unicode's Case_Ignorable).
bool is_ignorable(char32_t point) {
  static constexpr std::u32string_view within_words =
      U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13"
      U"\ufe52\ufe55\uff07\uff0e\uff1a";
  if (within_words.find(point) != std::u32string_view::npos) return true;
  switch (utf8proc_category(number(point))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return false;
  }
}

/// Returns whether the capital sigma at `at` ends a word. Its lower case differs there.
bool is_final_sigma(std::string_view text, std::size_t at) {
  const auto cased = [](char32_t point) { return case_of(point) != Case::none; };
  std::size_t before = at;
  while (before > 0) {
    before -= code_point_size_before(text, before);
    const char32_t point = code_point_at(text, before);
    if (is_ignorable(point)) {
      if (before == 0) return false;
      continue;
    }
    if (!cased(point)) return false;
    break;
  }
  if (at == 0) return false;
  for (std::size_t after = at + code_point_size(text, at); after < text.size();
       after += code_point_size(text, after)) {
    const char32_t point = code_point_at(text, after);
    if (!is_ignorable(point)) return !cased(point);
  }
  return true;
}

void append_lower(std::string& text, std::string_view from, std::size_t at) {
  constexpr char32_t capital_sigma = 0x3a3, sigma = 0x3c3, final_sigma = 0x3c2, capital_dotted_i = 0x130, dot = 0x307;
  const char32_t point = code_point_at(from, at);
  if (point == capital_sigma) return append_code_point(text, is_final_sigma(from, at) ? final_sigma : sigma);
  if (point == capital_dotted_i) {
    text += 'i';
    return append_code_point(text, dot);
  }
  append_code_point(text, static_cast<char32_t>(utf8proc_tolower(number(point))));
}

/// Calls visit(byte offset, code point) for each code point.
template <class Visit>
void for_each_point(std::string_view text, const Visit& visit) {
  for (std::size_t at = 0; at < text.size(); at += code_point_size(text, at)) visit(at, code_point_at(text, at));
}

/// Returns whether `text` has cased letters and all of them are of the case `wanted`.
bool is_cased(std::string_view text, Case wanted) {
  bool cased = false, other = false;
  for_each_point(text, [&](std::size_t, char32_t point) {
    const Case kind = case_of(point);
    cased |= kind == wanted;
    other |= kind != wanted && kind != Case::none;
  });
  return cased && !other;
}

}  // namespace

std::string to_upper(std::string_view text) {
  std::string out;
  for_each_point(text, [&](std::size_t, char32_t point) { append_upper(out, point); });
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  for_each_point(text, [&](std::size_t at, char32_t) { append_lower(out, text, at); });
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  bool in_word = false;
  for_each_point(text, [&](std::size_t at, char32_t point) {
    if (in_word)
      append_lower(out, text, at);
    else
      append_title(out, point);
    in_word = case_of(point) != Case::none;
  });
  return out;
}

std::string capitalize(std::string_view text) {
  std::string out;
  for_each_point(text, [&](std::size_t at, char32_t point) {
    if (at == 0)
      append_title(out, point);
    else
      append_lower(out, text, at);
  });
  return out;
}

bool is_upper(std::string_view text) { return is_cased(text, Case::upper); }
bool is_lower(std::string_view text) { return is_cased(text, Case::lower); }

bool is_title(std::string_view text) {
  bool cased = false, in_word = false, holds = true;
  for_each_point(text, [&](std::size_t, char32_t point) {
    const Case kind = case_of(point);
    if (kind != Case::none) {
      holds &= (kind == Case::lower) == in_word;
      cased = true;
    }
    in_word = kind != Case::none;
  });
  return cased && holds;
}

std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  // The C library's memmem uses the two-way algorithm.
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

std::size_t find_last(std::string_view text, std::string_view wanted) {
  const std::size_t at = find_first(reversed(text), reversed(wanted));
  return at == std::string_view::npos ? at : text.size() - at - wanted.size();
}

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

}  // namespace lathe::jinja
