#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/location.h"

namespace lathe::jinja {

/// Bytes [begin, end) of a template's text.
struct Extent {
  std::size_t begin = 0, end = 0;
};

/// Text of a template, with line ends normalized as in Jinja.
class Source {
 public:
  /// Throws ParseError if the text is not UTF-8.
  Source(std::string_view text, std::string_view name);

  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }
  /// Returns the one-based line number.
  int line_of(std::size_t at) const;
  Location location(Extent extent) const { return {name_, line_of(extent.begin)}; }
  /// Returns the source text for messages: on one line, truncated if it is long.
  std::string quote(Extent extent) const;
  /// Throws ParseError at a byte of the text.
  [[noreturn]] void fail(std::size_t at, std::string_view message, std::string_view hint = {}) const;

 private:
  std::string text_, name_;
};

enum class TokenType : std::uint8_t {
  data,            ///< text between the tags
  variable_begin,  ///< {{
  variable_end,
  block_begin,  ///< {%
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end,    ///< end of the template
  fault,  ///< the text from here on cannot be tokenized
};

struct Token {
  TokenType type = TokenType::end;
  Extent extent;
  std::string text;  ///< text of data and names, value of a string, symbol of an operator
  std::int64_t integer = 0;
  double real = 0;

  bool is_op(std::string_view symbol) const { return type == TokenType::op && text == symbol; }
  bool is_name(std::string_view name) const { return type == TokenType::name && text == name; }
};

/// Returns Jinja's description of a token for messages.
std::string describe(const Token& token);

struct Tokens {
  std::vector<Token> list;   ///< ends with an `end` or a `fault`
  std::exception_ptr fault;  ///< the ParseError of a `fault`, thrown when the parser reaches it
};

/// Returns the tokens of a template. Block tags on their own line lose the white space before them and one line end
/// after them (Jinja's lstrip_blocks and trim_blocks). {%- -%} strips all white space.
Tokens tokenize(const Source& source);

/// Returns the value of a string literal. `inside` is the text between its quotes. Supports Python's escapes except
/// \N{..}. Throws ParseError.
std::string unescape(const Source& source, Extent inside);

}  // namespace lathe::jinja
