#include "models/text/template/values/casing.h"

#include <utf8proc.h>

#include "models/text/template/values/code_points.h"

namespace lathe::jinja {

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

}  // namespace lathe::jinja
