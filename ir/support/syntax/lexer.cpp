#include "ir/support/syntax/lexer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "ir/support/error.h"

namespace lathe::syntax {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_word(char c) { return starts_word(c) || is_digit(c) || c == '.' || c == '@'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string describe(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02x}", byte);
}

/// Returns the source line and a caret line below it; cuts long lines to a window.
std::string excerpt(std::string_view line, std::size_t column, std::size_t length) {
  constexpr std::size_t window = 100, before = 60;
  const std::size_t start = column > before && line.size() > window ? column - before : 0;
  std::string shown(line.substr(start, window));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  const std::size_t at = column - start;
  const std::size_t room = std::max<std::size_t>(shown.size(), at + 1) - at;
  const std::size_t marks = std::max<std::size_t>(1, std::min(length, room));
  return fmt::format("  {}\n    {}^{}", shown, std::string(at, ' '), std::string(marks - 1, '~'));
}

}  // namespace

Source::LineColumn Source::line_column(std::size_t offset) const {
  const std::string_view before = text_.substr(0, offset);
  const auto newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return {static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1, static_cast<int>(column) + 1};
}

void Source::fail(std::size_t offset, std::size_t length, std::string_view message, std::string_view hint) const {
  const LineColumn at = line_column(offset);
  const std::size_t start = offset - static_cast<std::size_t>(at.column - 1);
  const std::string_view line = text_.substr(start, std::min(text_.find('\n', start), text_.size()) - start);
  std::string under(hint);
  if (!under.empty()) under += "\n  ";
  throw ParseError(file_, at.line, at.column, message, under + excerpt(line, offset - start, length));
}

void Lexer::skip_space() {
  for (;;) {
    for (; std::isspace(static_cast<unsigned char>(at(pos_))); ++pos_)
      if (at(pos_) == '\n') ++line_;
    if (at(pos_) != '/' || at(pos_ + 1) != '/') return;
    while (pos_ < source_.text().size() && at(pos_) != '\n') ++pos_;
  }
}

bool Lexer::in_word() const { return continues_word(at(pos_)) && (at(pos_) != '.' || at(pos_ + 1) != '.'); }

Token Lexer::finish(TokenKind kind, std::size_t start) const {
  return {kind, source_.text().substr(start, pos_ - start), {}, false, start, line_};
}

Token Lexer::next() {
  skip_space();
  const std::size_t start = pos_;
  if (pos_ >= source_.text().size()) return finish(TokenKind::end, start);
  const char c = at(pos_);
  if (is_digit(c)) return number();
  if (c == '%' || c == '@') return sigiled_name();
  if (c == '"') {
    std::string value = quoted_text();
    Token token = finish(TokenKind::text, start);
    token.value = std::move(value);
    return token;
  }
  if (starts_word(c)) {
    while (in_word()) ++pos_;
    return finish(TokenKind::word, start);
  }
  const std::string_view two = source_.text().substr(pos_, 2);
  if (two == "==" || two == "<=" || two == "<-" || two == "+=" || two == "..") {
    pos_ += 2;
  } else if (std::string_view("()[]{},:;=+-*^").find(c) != std::string_view::npos) {
    ++pos_;
  } else {
    source_.fail(start, 1, fmt::format("unexpected {}", describe(c)), "text outside of quotes is plain ASCII");
  }
  return finish(TokenKind::punctuation, start);
}

Token Lexer::number() {
  const std::size_t start = pos_;
  TokenKind kind = TokenKind::integer;
  while (is_digit(at(pos_))) ++pos_;
  if (at(pos_) == '.' && is_digit(at(pos_ + 1))) {
    kind = TokenKind::real;
    ++pos_;
    while (is_digit(at(pos_))) ++pos_;
  }
  if (at(pos_) == 'e' || at(pos_) == 'E') {
    kind = TokenKind::real;
    ++pos_;
    if (at(pos_) == '+' || at(pos_) == '-') ++pos_;
    if (!is_digit(at(pos_))) source_.fail(start, pos_ - start, "this number has no digits in its exponent");
    while (is_digit(at(pos_))) ++pos_;
  }
  if (in_word())
    source_.fail(start, pos_ + 1 - start, fmt::format("a number cannot continue with {}", describe(at(pos_))),
                 "a name starts with a letter or underscore; write 2*n for a product");
  return finish(kind, start);
}

Token Lexer::sigiled_name() {
  const std::size_t start = pos_++;
  const char sigil = at(start);
  const TokenKind kind = sigil == '%' ? TokenKind::value : TokenKind::graph_name;
  std::string name;
  const bool quotes = at(pos_) == '"';
  if (quotes) {
    name = quoted_text();
  } else {
    const bool number = is_digit(at(pos_));
    while (number ? is_digit(at(pos_)) : in_word()) name += at(pos_++);
  }
  if (!quotes && (name.empty() || (sigil == '@' && is_digit(name[0]))))
    source_.fail(start, 1, fmt::format("a name must follow {}", sigil),
                 fmt::format("such as {0}x or {0}\"any text\"", sigil));
  Token token = finish(kind, start);
  token.value = std::move(name);
  token.was_quoted = quotes;
  return token;
}

std::string Lexer::quoted_text() {
  const std::size_t start = pos_++;
  std::string value;
  for (;; ++pos_) {
    const char c = at(pos_);
    if (pos_ >= source_.text().size() || c == '\n')
      source_.fail(start, pos_ - start, "this quote does not end on its line",
                   "close it with \", or write \\n for a new line");
    if (c == '"') break;
    if (c != '\\') {
      value += c;
      continue;
    }
    const char escape = at(++pos_);
    if (escape == 'n' || escape == 't' || escape == '"' || escape == '\\') {
      value += escape == 'n' ? '\n' : escape == 't' ? '\t' : escape;
    } else if (escape == 'x' && hex_digit(at(pos_ + 1)) >= 0 && hex_digit(at(pos_ + 2)) >= 0) {
      value += static_cast<char>(hex_digit(at(pos_ + 1)) * 16 + hex_digit(at(pos_ + 2)));
      pos_ += 2;
    } else {
      source_.fail(pos_ - 1, 2, "unknown escape in quotes", "the escapes are \\\" \\\\ \\n \\t and \\x41");
    }
  }
  ++pos_;
  return value;
}

}  // namespace lathe::syntax
