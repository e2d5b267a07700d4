#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/template/syntax/source.h"

namespace lathe::jinja {

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

}  // namespace lathe::jinja
