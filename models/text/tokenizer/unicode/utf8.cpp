#include "models/text/tokenizer/unicode/utf8.h"

#include <cstring>

namespace lathe::text {

namespace {

enum class Validity { valid, invalid, cut };

struct Scan {
  Validity validity;
  std::size_t size;  ///< size of the character, or of the bytes that one U+FFFD replaces
};

/// Validates the character that starts at byte `at` (Unicode 15, table 3-7).
Scan scan(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {Validity::valid, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Validity::invalid, 1};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    if (at + i == text.size()) return {Validity::cut, i};
    if (byte(i) < (i == 1 ? least : 0x80) || byte(i) > (i == 1 ? most : 0xBF)) return {Validity::invalid, i};
  }
  return {Validity::valid, size};
}

/// Returns the end of the ASCII bytes that start at `at`; reads eight bytes at a time.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  while (at + 8 <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080u) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

constexpr std::string_view replacement = "\xEF\xBF\xBD";

}  // namespace

void append_character(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

std::string utf8(char32_t code) {
  std::string text;
  append_character(text, code);
  return text;
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += starts_character(byte) ? 1 : 0;
  return count;
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = skip_ascii(text, 0); at < text.size();) {
    const Scan found = scan(text, at);
    if (found.validity != Validity::valid) return at;
    at += found.size;
    if (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) at = skip_ascii(text, at);
  }
  return std::string_view::npos;
}

void Utf8Repair::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!pending_.empty()) {
    joined = pending_.append(bytes);
    pending_.clear();
    bytes = joined;
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const Scan found = scan(bytes, at);
    if (found.validity == Validity::cut) {
      pending_ = bytes.substr(at);
      return;
    }
    out.append(found.validity == Validity::valid ? bytes.substr(at, found.size) : replacement);
    at += found.size;
  }
}

void Utf8Repair::finish(std::string& out) {
  if (!pending_.empty()) out.append(replacement);
  pending_.clear();
}

}  // namespace lathe::text
