#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/support/nearest.h"
#include "ir/tensor/text/parser_detail.h"
#include "passes/program/program.h"

/// The parser of programs below statements: numbers, names, enumerators and ops.
namespace lathe::detail {

using ir::detail::GraphTokens;
using ir::detail::Token;

/// Parses an integer of at least `least` that fits in an int. `what` describes it in the message of a ParseError.
int parse_int(GraphTokens& in, int least, std::string_view what);
/// Parses the number of a statement and a colon. Throws ParseError unless the number is `expected`.
void parse_ordinal(GraphTokens& in, std::size_t expected);

/// Takes a word, or a name in double quotes.
Token take_name(GraphTokens& in, std::string_view what);
/// Returns the text of a token from take_name(), without quotes.
std::string text_of(const Token& token);
std::string parse_quoted(GraphTokens& in, std::string_view what);

DType parse_dtype(GraphTokens& in);
Dim parse_bracketed_dim(GraphTokens& in);
/// Parses `loc(...)`, or nothing.
Location parse_loc(GraphTokens& in);

ir::ValueId parse_value(GraphTokens& in);
/// Parses `%6 gather "x"`, or `- copy "w"`.
LaunchOp parse_op(GraphTokens& in);

/// Parses `[a, b]`; `item` parses one item.
template <class Item>
void parse_list(GraphTokens& in, const Item& item) {
  in.expect("[");
  if (in.accept("]")) return;
  do item();
  while (in.accept(","));
  if (!in.accept("]")) in.fail_expected("',' or ']'");
}

/// Parses the quoted words(e) of an enumerator e up to `last`.
template <class Enum>
Enum parse_enumerator(GraphTokens& in, Enum last, std::string_view what) {
  const Token token = in.expect(ir::detail::TokenKind::text, what);
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (words(static_cast<Enum>(i)) == token.value) return static_cast<Enum>(i);
    names.push_back(words(static_cast<Enum>(i)));
  }
  in.fail(token, "there is no " + std::string(token.spelling), did_you_mean_or_list(token.value, names, "known are"));
}

}  // namespace lathe::detail
