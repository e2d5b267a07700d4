#include <fmt/core.h>

#include "models/text/template/library/filters.h"
#include "models/text/template/library/tests.h"
#include "models/text/template/syntax/expression_parser.h"

/// Parses the suffixes of an operand: attributes, subscripts, calls, filters and tests.
namespace lathe::jinja {

ExprPtr ExpressionParser::parse_postfix(ExprPtr expr) {
  for (;;) {
    if (current().is_op(".") || current().is_op("["))
      expr = parse_subscript(std::move(expr));
    else if (current().is_op("("))
      expr = parse_call(std::move(expr));
    else
      return expr;
  }
}

ExprPtr ExpressionParser::parse_filters_and_tests(ExprPtr expr) {
  for (;;) {
    if (current().is_op("|"))
      expr = parse_filters(std::move(expr), false);
    else if (current().is_name("is"))
      expr = parse_test(std::move(expr));
    else if (current().is_op("("))
      expr = parse_call(std::move(expr));
    else
      return expr;
  }
}

ExprPtr ExpressionParser::parse_subscript(ExprPtr object) {
  const std::size_t begin = object->extent.begin;
  if (skip_op(".")) {
    const Token& token = next();
    if (token.type == TokenType::name) return make(begin, Attribute{std::move(object), token.text});
    if (token.type != TokenType::integer) fail(token, "expected name or number");
    ExprPtr index = make(token.extent.begin, Literal{token.integer});
    return make(begin, Subscript{std::move(object), std::move(index)});
  }
  expect_op("[");
  if (current().is_op("]")) fail(current(), "expected subscript expression");
  ExprPtr start = current().is_op(":") ? nullptr : parse_expression();
  if (!current().is_op(":")) {
    if (current().is_op(",")) fail(current(), "several subscripts are not supported", "write [a][b]");
    expect_op("]");
    return make(begin, Subscript{std::move(object), std::move(start)});
  }
  ExprPtr bounds[2];  // stop, step
  for (ExprPtr& bound : bounds)
    if (skip_op(":") && !current().is_op(":") && !current().is_op("]")) bound = parse_expression();
  expect_op("]");
  return make(begin, SliceExpr{std::move(object), std::move(start), std::move(bounds[0]), std::move(bounds[1])});
}

ExprPtr ExpressionParser::parse_call(ExprPtr callee) {
  const std::size_t begin = callee->extent.begin;
  CallArguments arguments = parse_arguments();
  return make(begin, Call{std::move(callee), std::move(arguments)});
}

CallArguments ExpressionParser::parse_arguments() {
  const Token& open = current();
  const auto ensure = [&](bool holds) {
    if (!holds) fail(open, "invalid syntax for function call expression");
  };
  expect_op("(");
  CallArguments given;
  bool first = true;
  while (!current().is_op(")")) {
    if (!first) expect_op(",");
    first = false;
    if (current().is_op(")")) break;
    if (skip_op("*")) {
      ensure(!given.rest && !given.named_rest);
      given.rest = parse_expression();
    } else if (skip_op("**")) {
      ensure(!given.named_rest);
      given.named_rest = parse_expression();
    } else if (current().type == TokenType::name && look().is_op("=")) {
      ensure(!given.named_rest);
      std::string name = next().text;
      next();
      for (const auto& [other, value] : given.named)
        if (other == name) fail(open, fmt::format("keyword argument repeated: {}", name));
      given.named.emplace_back(std::move(name), parse_expression());
    } else {
      ensure(!given.rest && !given.named_rest && given.named.empty());
      given.positional.push_back(parse_expression());
    }
  }
  expect_op(")");
  return given;
}

ExprPtr ExpressionParser::parse_filters(ExprPtr subject, bool first) {
  while (first || skip_op("|")) {
    first = false;
    const Token& token = expect(TokenType::name, "name");
    const std::size_t begin = subject ? subject->extent.begin : token.extent.begin;
    FilterUse use{
        .subject = std::move(subject), .name = token.text, .arguments = {}, .entry = find_filter(token.text)};
    while (skip_op(".")) use.name += "." + expect(TokenType::name, "name").text;
    if (use.name != token.text) use.entry = nullptr;
    if (!use.entry && is_unsupported_filter(use.name))
      fail(token, fmt::format("the filter '{}' of Jinja is not supported", use.name));
    if (current().is_op("(")) use.arguments = parse_arguments();
    subject = make(begin, std::move(use));
  }
  return subject;
}

ExprPtr ExpressionParser::parse_test(ExprPtr subject) {
  const std::size_t begin = subject->extent.begin;
  next();
  const bool negated = skip_name("not");
  const Token& token = expect(TokenType::name, "name");
  TestUse use{.subject = std::move(subject), .name = token.text, .arguments = {}, .entry = find_test(token.text)};
  while (skip_op(".")) use.name += "." + expect(TokenType::name, "name").text;
  if (use.name != token.text) use.entry = nullptr;
  const Token& then = current();
  const bool ends = then.is_name("else") || then.is_name("or") || then.is_name("and");
  const bool operand = then.type == TokenType::name || then.type == TokenType::string ||
                       then.type == TokenType::integer || then.type == TokenType::real || then.is_op("[") ||
                       then.is_op("{");
  if (then.is_op("(")) {
    use.arguments = parse_arguments();
  } else if (operand && !ends) {
    if (then.is_name("is")) fail(then, "You cannot chain multiple tests with is");
    const Nesting nesting(*this);
    use.arguments.positional.push_back(parse_postfix(parse_primary()));
  }
  ExprPtr test = make(begin, std::move(use));
  return negated ? make(begin, Not{std::move(test)}) : std::move(test);
}

}  // namespace lathe::jinja
