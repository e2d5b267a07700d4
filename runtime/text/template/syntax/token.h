#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/template/syntax/source.h"

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
  end,    ///< of the template
  fault,  ///< what follows cannot be read
};

struct Token {
  TokenType type = TokenType::end;
  Extent extent;
  std::string text;  ///< of data and names; a string's value; the operator's symbol
  std::int64_t integer = 0;
  double real = 0;

  bool is_op(std::string_view symbol) const { return type == TokenType::op && text == symbol; }
  bool is_name(std::string_view name) const { return type == TokenType::name && text == name; }
};

/// For messages, as Jinja describes tokens.
std::string describe(const Token& token);

struct Tokens {
  std::vector<Token> list;   ///< an `end` or a `fault` last
  std::exception_ptr fault;  ///< the ParseError of a `fault`, which counts when it is reached
};

/// The tokens of a template. Lines of blocks lose the white space before them and one line end behind
/// them (Jinja's lstrip_blocks and trim_blocks), and {%- -%} all white space.
Tokens tokenize(const Source& source);

}  // namespace lathe::jinja
