#include "tests/robustness/support/mutate.h"

#include <algorithm>
#include <cctype>

namespace lathe::robustness {

namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

/// Splits a text into words, quoted texts, single punctuation marks, and runs of spaces.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (in_word(text[at])) {
      while (end < text.size() && in_word(text[end])) ++end;
    } else if (text[at] == '"') {
      while (end < text.size() && text[end] != '"' && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (text[at] == ' ') {
      while (end < text.size() && text[end] == ' ') ++end;
    }
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

}  // namespace

std::string Mutator::edge() {
  static const std::string edges[] = {"0",
                                      "1",
                                      "-1",
                                      "2",
                                      "3",
                                      "127",
                                      "255",
                                      "256",
                                      "65536",
                                      "2147483647",
                                      "2147483648",
                                      "4294967296",
                                      "4611686018427387904",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "9223372036854775808",
                                      "18446744073709551615",
                                      "99999999999999999999999",
                                      "1e308",
                                      "1e-400",
                                      "1e400",
                                      "nan",
                                      "inf",
                                      "-inf",
                                      "0.5",
                                      "true",
                                      "false",
                                      "null",
                                      "[]",
                                      "{}",
                                      "[[]]",
                                      "\"\"",
                                      "\"\\n\"",
                                      "\"\\u0000\"",
                                      "f32",
                                      "i64",
                                      "c64",
                                      "bool",
                                      "n",
                                      "%1",
                                      "%x",
                                      "@g",
                                      "loc(\"\":0)",
                                      "//",
                                      "..",
                                      "-",
                                      "*",
                                      "-1*n",
                                      "n*n*n*n*n*n"};
  return any<std::string>(edges);
}

std::string Mutator::bytes(std::string text) {
  static constexpr std::string_view odd("\0\x01\n\r\t\"\\/{}[](),:;%@#\x1b\x7f\x80\xc2\xe2\xff", 26);
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1), length = below(std::min<std::size_t>(text.size() - at, 64) + 1);
    const bool has_byte = at < text.size();
    switch (below(8)) {
      case 0:
        if (has_byte) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (has_byte) text[at] = odd[below(odd.size())];
        break;
      case 2: text.insert(at, 1, odd[below(odd.size())]); break;
      case 3: text.erase(at, length); break;
      case 4: text.insert(below(text.size() + 1), std::string(text, at, length)); break;
      case 5: text.resize(at); break;
      case 6: text.insert(at, edge()); break;
      case 7: text.insert(at, below(2000), has_byte ? text[at] : '('); break;
    }
  }
  return text;
}

std::string Mutator::words(std::string_view text, std::string_view other) {
  std::vector<std::string> parts = split(text);
  const std::vector<std::string> others = split(other);
  for (std::size_t changes = 1 + below(4); changes > 0 && !parts.empty(); --changes) {
    // Spaces are not changed, because that would have no effect.
    std::size_t at = below(parts.size());
    for (std::size_t tries = 0; tries < 8 && parts[at][0] == ' '; ++tries) at = below(parts.size());
    const auto work = parts.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = work + static_cast<std::ptrdiff_t>(std::min<std::size_t>(1 + below(24), parts.size() - at));
    switch (below(8)) {
      case 0: parts[at] = edge(); break;
      case 1: parts[at] = parts[below(parts.size())]; break;
      case 2:
        if (!others.empty()) parts[at] = others[below(others.size())];
        break;
      case 3: std::swap(parts[at], parts[below(parts.size())]); break;
      case 4: parts.erase(work); break;
      case 5: parts.erase(work, end); break;
      case 6: {
        const std::vector<std::string> copy(work, end);
        parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(below(parts.size() + 1)), copy.begin(), copy.end());
        break;
      }
      case 7: parts[at] = any_kind(parts[at], {}); break;
    }
  }
  return joined(parts);
}

std::string Mutator::any_kind(std::string_view text, std::string_view other) {
  return one_in(3) || other.empty() ? bytes(std::string(text)) : words(text, other);
}

}  // namespace lathe::robustness
