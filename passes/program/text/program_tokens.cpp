#include "passes/program/text/program_tokens.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>

namespace lathe::detail {

using ir::detail::TokenKind;

int parse_int(GraphTokens& in, int least, std::string_view what) {
  const Token at = in.peek();
  const std::int64_t given = parse_integer(in);
  if (given < least || given > std::numeric_limits<int>::max())
    in.fail(at, fmt::format("expected {}, found {}", what, given));
  return static_cast<int>(given);
}

void parse_ordinal(GraphTokens& in, std::size_t expected) {
  const Token at = in.peek();
  if (parse_integer(in) != static_cast<std::int64_t>(expected))
    in.fail(at, fmt::format("this has the number {}", expected), "numbers start at 0 and are in order");
  in.expect(":");
}

Token take_name(GraphTokens& in, std::string_view what) {
  if (in.peek().kind != TokenKind::word && in.peek().kind != TokenKind::text) in.fail_expected(what);
  return in.take();
}

std::string text_of(const Token& token) {
  return token.kind == TokenKind::text ? token.value : std::string(token.spelling);
}

std::string parse_quoted(GraphTokens& in, std::string_view what) { return in.expect(TokenKind::text, what).value; }

DType parse_dtype(GraphTokens& in) {
  const auto dtype = lathe::parse_dtype(in.peek().spelling);
  if (!dtype) in.fail_expected("a dtype, such as f32");
  in.take();
  return *dtype;
}

Dim parse_bracketed_dim(GraphTokens& in) {
  in.expect("[");
  Dim dim = parse_dim(in);
  in.expect("]");
  return dim;
}

Location parse_loc(GraphTokens& in) { return parse_location(in).value_or(Location()); }

ir::ValueId parse_value(GraphTokens& in) {
  const Token token = in.expect(TokenKind::value, "a value of the graph, such as %4, or '-'");
  std::int32_t index = -1;
  const std::string& text = token.value;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || stop != text.data() + text.size() || token.was_quoted)
    in.fail(token, "values of a program are numbers");
  return {index};
}

LaunchOp parse_op(GraphTokens& in) {
  LaunchOp op;
  if (!in.accept("-")) op.value = parse_value(in);
  const Token token = in.expect(TokenKind::word, "the name of an op");
  if (!token.is_word("copy")) {
    op.op = ir::find_op(token.spelling);
    if (!op.op) in.fail(token, fmt::format("there is no op '{}'", token.spelling), "docs/ops.md lists the ops");
  }
  if (in.peek().kind == TokenKind::text) op.name = in.take().value;
  return op;
}

}  // namespace lathe::detail
