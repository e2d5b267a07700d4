#include "models/text/template/syntax/lexer.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>

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

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns whether a character is part of an identifier. As in Python, this includes non-ASCII letters.
bool is_word(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (static_cast<unsigned char>(c) < 0x80)
    return c == '_' || is_digit(c) || std::isalpha(static_cast<unsigned char>(c));
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point_at(text, at)));
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC;
}

constexpr std::array two_characters{"//", "**", "==", "!=", ">=", "<="};
constexpr std::string_view one_character = "+-/*%~[](){}><=.:|,;";

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  Tokens run() {
    std::exception_ptr fault;
    try {
      while (at_ < text_.size()) lex_data();
    } catch (const ParseError&) {
      fault = std::current_exception();
    }
    // Starts at the last token, so that messages name its line.
    add(fault ? TokenType::fault : TokenType::end, tokens_.empty() ? 0 : tokens_.back().extent.begin);
    return {std::move(tokens_), fault};
  }

 private:
  char peek(std::size_t offset = 0) const { return at_ + offset < text_.size() ? text_[at_ + offset] : '\0'; }
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }
  bool is_space_here() const { return at_ < text_.size() && is_space(code_point_at(text_, at_)); }
  void skip_spaces() { at_ = text_.size() - strip_start(text_.substr(at_)).size(); }

  Token& add(TokenType type, std::size_t begin) {
    Token& token = tokens_.emplace_back();
    token.type = type;
    token.extent = {begin, at_};
    return token;
  }

  void add_data(std::size_t begin, std::string_view data) {
    if (!data.empty()) add(TokenType::data, begin).text = data;
  }

  /// Lexes text up to a tag, and the tag.
  void lex_data() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !starts("{{") && !starts("{%") && !starts("{#")) ++at_;
    std::string_view data = text_.substr(begin, at_ - begin);
    if (at_ == text_.size()) return add_data(begin, data);
    const std::size_t tag = at_;
    const char kind = peek(1), sign = peek(2);
    at_ += 2 + (sign == '-' || sign == '+');
    add_data(begin, before_tag(data, sign, kind != '{'));
    if (kind == '#') return lex_comment(tag);
    if (kind == '%' && try_raw(tag)) return;
    add(kind == '%' ? TokenType::block_begin : TokenType::variable_begin, tag);
    lex_tag(tag, kind == '%' ? "%}" : "}}");
  }

  /// Returns the text before a tag after white-space control.
  std::string_view before_tag(std::string_view data, char sign, bool strips_line) const {
    if (sign == '-') return strip_end(data);
    if (sign == '+' || !strips_line) return data;
    const std::size_t line = data.rfind('\n') + 1;  // 0 if there is no line end
    if (line == 0 && !line_starting_) return data;
    return strip_start(data.substr(line)).empty() ? data.substr(0, line) : data;
  }

  /// Skips the end of a tag, whose symbol is `end`. Returns false if it is not here.
  bool try_end(std::string_view end, bool trims_line) {
    if (starts(std::string("-").append(end))) {
      at_ += 1 + end.size();
      skip_spaces();
    } else if (starts(end)) {
      at_ += end.size();
      if (trims_line && peek() == '\n') ++at_;
    } else if (trims_line && starts(std::string("+").append(end))) {
      at_ += 1 + end.size();
    } else {
      return false;
    }
    line_starting_ = text_[at_ - 1] == '\n';
    return true;
  }

  void lex_comment(std::size_t tag) {
    if (at_ == text_.size()) return;  // as in Jinja
    for (; at_ < text_.size(); ++at_)
      if (try_end("#}", true)) return;
    source_.fail(tag, "Missing end of comment tag");
  }

  /// Lexes {% raw %}: literal text up to {% endraw %}. `at_` is after the sign of the tag.
  bool try_raw(std::size_t tag) {
    const std::size_t start = at_;
    skip_spaces();
    if (!starts("raw")) return at_ = start, false;
    at_ += 3;
    skip_spaces();
    if (!try_end("%}", false)) return at_ = start, false;
    if (at_ == text_.size()) return true;  // as in Jinja
    for (const std::size_t begin = at_; at_ < text_.size(); ++at_) {
      if (!starts("{%")) continue;
      const std::size_t stop = at_;
      const char sign = peek(2);
      at_ += 2 + (sign == '-' || sign == '+');
      skip_spaces();
      if (starts("endraw")) {
        at_ += 6;
        skip_spaces();
        const std::string_view data = before_tag(text_.substr(begin, stop - begin), sign, true);
        if (try_end("%}", true)) return add_data(begin, data), true;
      }
      at_ = stop;
    }
    source_.fail(tag, "Missing end of raw directive");
  }

  void lex_tag(std::size_t tag, std::string_view end) {
    std::string open;  // closing brackets that are expected
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      if (open.empty() && try_end(end, end == "%}")) {
        add(end == "%}" ? TokenType::block_end : TokenType::variable_end, begin);
        return;
      }
      if (is_space_here())
        skip_spaces();
      else
        lex_token(open);
    }
    if (!open.empty()) source_.fail(tag, fmt::format("unexpected end of template, expected '{}'.", open.back()));
    // The parser reports the missing end of the tag.
  }

  void lex_token(std::string& open) {
    const std::size_t begin = at_;
    if (is_digit(peek())) return lex_number();
    if (peek() == '\'' || peek() == '"') return lex_string();
    if (is_word(text_, at_)) {
      while (at_ < text_.size() && is_word(text_, at_)) at_ += code_point_size(text_, at_);
      add(TokenType::name, begin).text = text_.substr(begin, at_ - begin);
      return;
    }
    for (const char* symbol : two_characters)
      if (starts(symbol)) return lex_operator(2, open);
    if (one_character.find(peek()) != std::string_view::npos) return lex_operator(1, open);
    source_.fail(at_, fmt::format("unexpected char '{}'", text_.substr(at_, code_point_size(text_, at_))));
  }

  void lex_operator(std::size_t size, std::string& open) {
    const std::size_t begin = at_;
    const char c = peek();
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) source_.fail(at_, fmt::format("unexpected '{}'", c));
      if (open.back() != c) source_.fail(at_, fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    at_ += size;
    add(TokenType::op, begin).text = text_.substr(begin, size);
  }

  void lex_string() {
    const std::size_t begin = at_;
    const char quote = peek();
    for (++at_; at_ < text_.size() && peek() != quote; ++at_)
      if (peek() == '\\') ++at_;
    if (at_ >= text_.size()) source_.fail(begin, fmt::format("unexpected char {} (a string without an end)", quote));
    ++at_;
    std::string value = unescape(source_, {begin + 1, at_ - 1});
    add(TokenType::string, begin).text = std::move(value);
  }

  /// Returns the end of the digits at `at`, with single underscores between them.
  std::size_t digits_end(std::size_t at, std::string_view allowed) const {
    const auto fits = [&](std::size_t i) {
      return i < text_.size() && text_[i] != '\0' && allowed.find(text_[i]) != std::string_view::npos;
    };
    if (!fits(at)) return at;
    while (fits(at) || (at < text_.size() && text_[at] == '_' && fits(at + 1))) ++at;
    return at;
  }

  static constexpr std::string_view decimal = "0123456789";

  /// Returns the end of the float that starts here, or 0.
  std::size_t float_end() const {
    if (at_ > 0 && text_[at_ - 1] == '.') return 0;
    const std::size_t whole = digits_end(at_, decimal);
    std::size_t end = whole;
    if (end < text_.size() && text_[end] == '.') {
      const std::size_t fraction = digits_end(end + 1, decimal);
      if (fraction > end + 1) end = fraction;
    }
    std::size_t exponent = end;
    if (exponent < text_.size() && (text_[exponent] == 'e' || text_[exponent] == 'E')) {
      ++exponent;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      const std::size_t digits = digits_end(exponent, decimal);
      if (digits > exponent) return digits;
    }
    return end > whole ? end : 0;
  }

  std::string plain_digits(std::size_t begin, std::size_t end) const {
    std::string digits(text_.substr(begin, end - begin));
    std::erase(digits, '_');
    return digits;
  }

  void lex_number() {
    const std::size_t begin = at_;
    if (const std::size_t end = float_end()) {
      at_ = end;
      const std::string digits = plain_digits(begin, end);
      double value = 0;
      const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      const bool tiny = digits.find('-') != std::string::npos;  // has a negative exponent
      if (read.ec != std::errc() && !tiny) source_.fail(begin, "the number is too large");
      add(TokenType::real, begin).real = value;
      return;
    }
    int base = 10;
    const char prefix = static_cast<char>(peek(1) | 0x20);
    std::string_view allowed = decimal;
    if (peek() == '0') {
      allowed = "0";
      if (prefix == 'x') base = 16, allowed = "0123456789abcdefABCDEF";
      if (prefix == 'o') base = 8, allowed = "01234567";
      if (prefix == 'b') base = 2, allowed = "01";
    }
    std::size_t first = begin;
    if (base != 10) {
      first = begin + 2 + (peek(2) == '_');
      if (digits_end(first, allowed) == first) base = 10, first = begin, allowed = "0";
    }
    at_ = digits_end(first, allowed);
    const std::string digits = plain_digits(first, at_);
    std::int64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (read.ec != std::errc()) source_.fail(begin, "the integer is beyond 64 bits");
    add(TokenType::integer, begin).integer = value;
  }

  const Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool line_starting_ = true;  ///< the text here starts a line or the template
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::data: return "template data / text";
    case TokenType::variable_begin: return "begin of print statement";
    case TokenType::variable_end: return "end of print statement";
    case TokenType::block_begin: return "begin of statement block";
    case TokenType::block_end: return "end of statement block";
    case TokenType::name:
    case TokenType::op: return token.text;
    case TokenType::string: return "string";
    case TokenType::integer: return "integer";
    case TokenType::real: return "float";
    case TokenType::end:
    case TokenType::fault: return "end of template";
  }
  return {};
}

Tokens tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace lathe::jinja
