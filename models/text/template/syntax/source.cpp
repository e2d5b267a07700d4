#include "models/text/template/syntax/source.h"

#include <algorithm>

#include "ir/support/error.h"
#include "models/text/template/values/code_points.h"

namespace lathe::jinja {

namespace {

/// Replaces \r\n and \r by \n and removes one line end at the end of the text.
std::string with_plain_lines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += text[i] == '\r' ? '\n' : text[i];
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

}  // namespace

Source::Source(std::string_view text, std::string_view name) : text_(with_plain_lines(text)), name_(name) {
  const std::size_t invalid = find_invalid_utf8(text_);
  if (invalid == std::string::npos) return;
  const auto line =
      static_cast<int>(1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(invalid), '\n'));
  throw ParseError(name_, line, 1, "the text is not UTF-8");
}

int Source::line_of(std::size_t at) const {
  return static_cast<int>(1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

std::string Source::quote(Extent extent) const {
  constexpr std::size_t longest = 80;
  std::string quoted;
  for (const char c : std::string_view(text_).substr(extent.begin, extent.end - extent.begin)) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space) quoted += c;
    if (space && !quoted.ends_with(' ')) quoted += ' ';
  }
  if (quoted.size() <= longest) return quoted;
  std::size_t cut = longest - 3;
  while (cut > 0 && (static_cast<unsigned char>(quoted[cut]) & 0xc0u) == 0x80u) --cut;
  return quoted.substr(0, cut) + "...";
}

void Source::fail(std::size_t at, std::string_view message, std::string_view hint) const {
  const std::string_view before = std::string_view(text_).substr(0, at);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 on the first line
  const auto column = 1 + count_code_points(before.substr(line_start));
  throw ParseError(name_, line_of(at), static_cast<int>(column), message, hint);
}

}  // namespace lathe::jinja
