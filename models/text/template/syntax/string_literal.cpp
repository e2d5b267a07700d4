#include "models/text/template/syntax/string_literal.h"

#include <charconv>

#include "models/text/template/values/code_points.h"

namespace lathe::jinja {

namespace {

class Unescaper {
 public:
  Unescaper(const Source& source, Extent inside)
      : source_(source), text_(std::string_view(source.text()).substr(0, inside.end)), at_(inside.begin) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\\')
        escape();
      else
        out_ += text_[at_++];
    }
    return std::move(out_);
  }

 private:
  /// Parses an escape sequence. Something follows the backslash, because the literal does not end in an odd number of
  /// backslashes.
  void escape() {
    const std::size_t begin = at_;
    const char kind = text_[begin + 1];
    at_ += 2;
    switch (kind) {
      case '\n': return;
      case '\\':
      case '\'':
      case '"': out_ += kind; return;
      case 'a': out_ += '\a'; return;
      case 'b': out_ += '\b'; return;
      case 'f': out_ += '\f'; return;
      case 'n': out_ += '\n'; return;
      case 'r': out_ += '\r'; return;
      case 't': out_ += '\t'; return;
      case 'v': out_ += '\v'; return;
      case 'x': return number(begin, 2);
      case 'u': return number(begin, 4);
      case 'U': return number(begin, 8);
      case 'N': source_.fail(begin, "\\N{..} in a string is not supported", "write \\u and the code point");
      default: break;
    }
    if (kind >= '0' && kind <= '7') return octal(begin + 1);
    out_ += '\\';  // unknown escape: keep both characters
    out_ += kind;
  }

  void number(std::size_t begin, std::size_t digits) {
    std::uint32_t point = 0;
    const char* first = text_.data() + at_;
    const std::size_t there = std::min(digits, text_.size() - at_);
    const auto read = std::from_chars(first, first + there, point, 16);
    if (read.ptr != first + digits) source_.fail(begin, "truncated \\x, \\u or \\U escape in a string");
    at_ += digits;
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
      source_.fail(begin, "an escape in a string is no Unicode character",
                   "write \\U and the code point, not surrogates");
    append_code_point(out_, point);
  }

  void octal(std::size_t begin) {
    char32_t point = 0;
    for (at_ = begin; at_ < text_.size() && at_ < begin + 3 && text_[at_] >= '0' && text_[at_] <= '7'; ++at_)
      point = point * 8 + static_cast<char32_t>(text_[at_] - '0');
    append_code_point(out_, point);
  }

  const Source& source_;
  std::string_view text_;
  std::size_t at_;
  std::string out_;
};

}  // namespace

std::string unescape(const Source& source, Extent inside) { return Unescaper(source, inside).run(); }

}  // namespace lathe::jinja
