#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/op/attribute.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/lexer.h"
#include "ir/tensor/text/parser.h"

/// The parser below statements: tokens, dims, types, attributes, locations.
namespace lathe::ir::detail {

/// Token stream with one token of lookahead, and errors that point at tokens.
class TokenStream {
 public:
  TokenStream(const Source& source, const ParseLimits& limits) : source_(source), limits_(limits), lexer_(source) {
    token_ = lexer_.next();
  }
  const Token& peek() const { return token_; }
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
  const ParseLimits& limits() const { return limits_; }

 private:
  const Source& source_;
  ParseLimits limits_;
  Lexer lexer_;
  Token token_;
  std::size_t last_end_ = 0;
};

Dim parse_dim(TokenStream& in);
Shape parse_shape(TokenStream& in);

/// A type as written; `strides` is set if `strided(...)` lists them.
struct WrittenType {
  DType dtype = f32;
  Shape shape;
  bool strided = false;
  std::optional<std::vector<Dim>> strides;
  Token first;
};
WrittenType parse_type(TokenStream& in);

std::int64_t parse_integer(TokenStream& in);
double parse_real(TokenStream& in);
Number parse_number(TokenStream& in);  ///< exact for 64-bit integers

/// Parses `{a=1, b=[2]}` or nothing, by the op's schema.
Attributes parse_attributes(TokenStream& in, const Op& op);

/// Parses `loc(...)` or nothing.
std::optional<Location> parse_location(TokenStream& in);

}  // namespace lathe::ir::detail
