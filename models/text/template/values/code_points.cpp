#include "models/text/template/values/code_points.h"

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

}  // namespace lathe::jinja
