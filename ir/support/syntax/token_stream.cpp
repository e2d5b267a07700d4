#include "ir/support/syntax/token_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace lathe::syntax {

namespace {

std::string describe(const Token& token) {
  constexpr std::size_t longest = 40;
  if (token.kind == TokenKind::end) return "the end of the text";
  if (token.spelling.size() > longest) return fmt::format("'{}...'", token.spelling.substr(0, longest));
  return fmt::format("'{}'", token.spelling);
}

}  // namespace

Token TokenStream::after() const {
  Lexer ahead = lexer_;
  return ahead.next();
}

Token TokenStream::take() {
  last_end_ = token_.offset + token_.spelling.size();
  Token taken = std::move(token_);
  token_ = lexer_.next();
  return taken;
}

bool TokenStream::accept(std::string_view punctuation) {
  if (!token_.is(punctuation)) return false;
  take();
  return true;
}

bool TokenStream::accept_word(std::string_view word) {
  if (!token_.is_word(word)) return false;
  take();
  return true;
}

Token TokenStream::expect(std::string_view punctuation) {
  if (!token_.is(punctuation)) fail_expected(fmt::format("'{}'", punctuation));
  return take();
}

Token TokenStream::expect_word(std::string_view word) {
  if (!token_.is_word(word)) fail_expected(fmt::format("'{}'", word));
  return take();
}

Token TokenStream::expect(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) fail_expected(what);
  return take();
}

void TokenStream::fail_expected(std::string_view what, std::string_view hint) const {
  fail(token_, fmt::format("expected {}, found {}", what, describe(token_)), hint);
}

void TokenStream::fail(const Token& at, std::string_view message, std::string_view hint) const {
  source_.fail(at.offset, at.spelling.size(), message, hint);
}

void TokenStream::fail_since(const Token& first, std::string_view message, std::string_view hint) const {
  source_.fail(first.offset, std::max(last_end_, first.offset + 1) - first.offset, message, hint);
}

namespace {

/// Converts the digits of an integer token.
std::int64_t to_integer(TokenStream& in, const Token& token, bool negative) {
  const std::string digits = (negative ? "-" : "") + std::string(token.spelling);
  std::int64_t number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc())
    in.fail(token, fmt::format("the number {} does not fit 64 bits", digits));
  return number;
}

}  // namespace

std::int64_t parse_integer(TokenStream& in) {
  const bool negative = in.accept("-");
  const Token token = in.expect(TokenKind::integer, "an integer");
  return to_integer(in, token, negative);
}

double parse_real(TokenStream& in) { return parse_number(in).real(); }

Number parse_number(TokenStream& in) {
  const bool negative = in.accept("-");
  const double sign = negative ? -1 : 1;
  if (in.accept_word("inf")) return sign * std::numeric_limits<double>::infinity();
  if (in.accept_word("nan")) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  const Token token = in.peek();
  if (token.kind != TokenKind::integer && token.kind != TokenKind::real) in.fail_expected("a number");
  in.take();
  const char* const start = token.spelling.data();
  const char* const end = start + token.spelling.size();
  std::uint64_t integer = 0;
  // A zero may be the negative zero of a float.
  if (token.kind == TokenKind::integer && std::from_chars(start, end, integer).ec == std::errc() && integer != 0 &&
      integer <= (negative ? std::uint64_t{1} << 63 : std::numeric_limits<std::uint64_t>::max()))
    return negative ? Number(static_cast<std::int64_t>(0 - integer)) : Number(integer);
  double number = 0;
  const auto [stop, error] = std::from_chars(start, end, number);
  if (error != std::errc() || stop != end)
    in.fail(token, "the number is too large or too small for f64", "write inf or 0.0");
  // As an i64, the lowest one must not come from a lower number that f64 rounds to it.
  if (token.kind == TokenKind::integer && negative && number == 0x1p63)
    in.fail(token, fmt::format("the number -{} does not fit 64 bits", token.spelling),
            "write the lowest i64 as -9223372036854775808, and a float with a point, as in -9223372036854775808.0");
  return sign * number;
}

}  // namespace lathe::syntax
