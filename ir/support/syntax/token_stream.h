#pragma once

#include <cstdint>
#include <string_view>

#include "ir/support/numbers/number.h"
#include "ir/support/syntax/lexer.h"

namespace lathe::syntax {

/// Token stream with one token of lookahead, and errors that point at tokens.
class TokenStream {
 public:
  explicit TokenStream(const Source& source) : source_(source), lexer_(source) { token_ = lexer_.next(); }
  const Token& peek() const { return token_; }
  Token after() const;  ///< the token after peek()
  /// Returns whether nothing separates the current token from the previous one.
  bool adjacent() const { return token_.offset == last_end_; }
  Token take();
  bool accept(std::string_view punctuation);
  bool accept_word(std::string_view word);
  Token expect(std::string_view punctuation);
  Token expect_word(std::string_view word);
  /// Takes a token of this kind; `what` describes the expectation in errors.
  Token expect(TokenKind kind, std::string_view what);

  /// Throws "expected <what>, found <token>".
  [[noreturn]] void fail_expected(std::string_view what, std::string_view hint = {}) const;
  [[noreturn]] void fail(const Token& at, std::string_view message, std::string_view hint = {}) const;
  /// Reports `message` for the range from `first` to the token before the current one.
  [[noreturn]] void fail_since(const Token& first, std::string_view message, std::string_view hint = {}) const;

  const Source& source() const { return source_; }

 private:
  const Source& source_;
  Lexer lexer_;
  Token token_;
  std::size_t last_end_ = 0;
};

std::int64_t parse_integer(TokenStream& in);
double parse_real(TokenStream& in);
Number parse_number(TokenStream& in);  ///< exact for 64-bit integers

}  // namespace lathe::syntax
