#include <fmt/core.h>

#include "models/text/template/library/library.h"
#include "models/text/template/syntax/ast.h"
#include "models/text/template/syntax/parser.h"

/// Parses the suffixes of an operand: attributes, subscripts, calls, filters and tests.
namespace lathe::jinja {

bool ExpressionParser::skip_op(std::string_view symbol) {
  const bool there = current().is_op(symbol);
  if (there) next();
  return there;
}

bool ExpressionParser::skip_name(std::string_view name) {
  const bool there = current().is_name(name);
  if (there) next();
  return there;
}

void ExpressionParser::fail_expected(std::string_view described) const {
  if (current().type == TokenType::end)
    fail(current(), fmt::format("unexpected end of template, expected '{}'.", described));
  fail(current(), fmt::format("expected token '{}', got '{}'", described, describe(current())));
}

const Token& ExpressionParser::expect(TokenType type, std::string_view described) {
  if (current().type != type) fail_expected(described);
  return next();
}

void ExpressionParser::expect_op(std::string_view symbol) {
  if (!skip_op(symbol)) fail_expected(symbol);
}

void ExpressionParser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_expected(name);
}

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ <= max_nesting) return;
  --parser_.nesting_;
  parser_.fail(parser_.current(), fmt::format("expressions and blocks nest more than {} deep", max_nesting));
}

ExprPtr ExpressionParser::make(std::size_t begin, Expr::Node node) {
  auto expr = std::make_unique<Expr>();
  expr->extent = {begin, at_ == 0 ? begin : tokens_.list[at_ - 1].extent.end};
  expr->node = std::move(node);
  for_each_child(*expr, [&](const Expr& child) { expr->height = std::max(expr->height, child.height + 1); });
  if (expr->height > max_height)
    source_.fail(begin, fmt::format("an expression has more than {} operations within each other", max_height));
  return expr;
}

bool ExpressionParser::is_tuple_end(std::string_view end_name) const {
  const Token& token = current();
  return token.type == TokenType::variable_end || token.type == TokenType::block_end || token.is_op(")") ||
         (!end_name.empty() && token.is_name(end_name));
}

ExprPtr ExpressionParser::parse_tuple(const TupleRules& rules) {
  const std::size_t begin = current().extent.begin;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  while (!is_tuple_end(rules.end_name)) {
    items.push_back(parse_expression(rules.conditional));
    if (!skip_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items.front());
  if (!is_tuple && !rules.parenthesized)
    fail(current(), fmt::format("Expected an expression, got '{}'", describe(current())));
  return make(begin, ListDisplay{true, std::move(items)});
}

ExprPtr ExpressionParser::parse_expression(bool conditional) {
  return conditional ? parse_conditional() : parse_or();
}

ExprPtr ExpressionParser::parse_conditional() {
  const Nesting nesting(*this);
  const std::size_t begin = current().extent.begin;
  ExprPtr expr = parse_or();
  while (skip_name("if")) {
    ExprPtr test = parse_or();
    ExprPtr otherwise = skip_name("else") ? parse_conditional() : nullptr;
    expr = make(begin, Conditional{std::move(test), std::move(expr), std::move(otherwise)});
  }
  return expr;
}

ExprPtr ExpressionParser::parse_or() {
  const std::size_t begin = current().extent.begin;
  ExprPtr left = parse_and();
  while (skip_name("or")) {
    ExprPtr right = parse_and();
    left = make(begin, Logical{false, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_and() {
  const std::size_t begin = current().extent.begin;
  ExprPtr left = parse_not();
  while (skip_name("and")) {
    ExprPtr right = parse_not();
    left = make(begin, Logical{true, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_not() {
  const std::size_t begin = current().extent.begin;
  if (!skip_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  ExprPtr operand = parse_not();
  return make(begin, Not{std::move(operand)});
}

ExprPtr ExpressionParser::parse_comparison() {
  static constexpr std::pair<std::string_view, Comparator> symbols[] = {
      {"==", Comparator::equal},      {"!=", Comparator::not_equal}, {"<", Comparator::less},
      {"<=", Comparator::less_equal}, {">", Comparator::greater},    {">=", Comparator::greater_equal}};
  const std::size_t begin = current().extent.begin;
  ExprPtr first = parse_sum();
  std::vector<std::pair<Comparator, ExprPtr>> rest;
  for (;;) {
    const auto* symbol = std::find_if(std::begin(symbols), std::end(symbols),
                                      [&](const auto& entry) { return current().is_op(entry.first); });
    if (symbol != std::end(symbols)) {
      next();
      rest.emplace_back(symbol->second, parse_sum());
    } else if (skip_name("in")) {
      rest.emplace_back(Comparator::in, parse_sum());
    } else if (current().is_name("not") && look().is_name("in")) {
      next();
      next();
      rest.emplace_back(Comparator::not_in, parse_sum());
    } else {
      break;
    }
  }
  if (rest.empty()) return first;
  return make(begin, Comparison{std::move(first), std::move(rest)});
}

ExprPtr ExpressionParser::parse_sum() {
  const std::size_t begin = current().extent.begin;
  ExprPtr left = parse_concat();
  while (current().is_op("+") || current().is_op("-")) {
    const BinaryOp op = next().text == "+" ? BinaryOp::add : BinaryOp::subtract;
    ExprPtr right = parse_concat();
    left = make(begin, BinaryExpr{op, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_concat() {
  const std::size_t begin = current().extent.begin;
  std::vector<ExprPtr> parts;
  parts.push_back(parse_product());
  while (skip_op("~")) parts.push_back(parse_product());
  if (parts.size() == 1) return std::move(parts.front());
  return make(begin, Concat{std::move(parts)});
}

ExprPtr ExpressionParser::parse_product() {
  static constexpr std::pair<std::string_view, BinaryOp> symbols[] = {
      {"*", BinaryOp::multiply}, {"/", BinaryOp::divide}, {"//", BinaryOp::floor_divide}, {"%", BinaryOp::modulo}};
  const std::size_t begin = current().extent.begin;
  ExprPtr left = parse_power();
  for (;;) {
    const auto* symbol = std::find_if(std::begin(symbols), std::end(symbols),
                                      [&](const auto& entry) { return current().is_op(entry.first); });
    if (symbol == std::end(symbols)) return left;
    next();
    ExprPtr right = parse_power();
    left = make(begin, BinaryExpr{symbol->second, std::move(left), std::move(right)});
  }
}

ExprPtr ExpressionParser::parse_power() {
  const std::size_t begin = current().extent.begin;
  ExprPtr left = parse_unary(true);
  while (skip_op("**")) {
    ExprPtr right = parse_unary(true);
    left = make(begin, BinaryExpr{BinaryOp::power, std::move(left), std::move(right)});
  }
  return left;
}

ExprPtr ExpressionParser::parse_unary(bool with_filters) {
  const std::size_t begin = current().extent.begin;
  ExprPtr expr;
  if (current().is_op("-") || current().is_op("+")) {
    const Nesting nesting(*this);
    const UnaryOp op = next().text == "-" ? UnaryOp::minus : UnaryOp::plus;
    ExprPtr operand = parse_unary(false);
    expr = make(begin, UnaryExpr{op, std::move(operand)});
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(std::move(expr));
  return with_filters ? parse_filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr ExpressionParser::parse_primary() {
  const Token& token = current();
  const std::size_t begin = token.extent.begin;
  if (token.type == TokenType::name) return parse_name();
  if (token.type == TokenType::string) return parse_strings();
  if (token.type == TokenType::integer || token.type == TokenType::real) {
    Value number = token.type == TokenType::integer ? Value(token.integer) : Value(token.real);
    next();
    return make(begin, Literal{std::move(number)});
  }
  if (token.is_op("[")) return parse_list();
  if (token.is_op("{")) return parse_dict();
  if (!skip_op("(")) fail(token, fmt::format("unexpected '{}'", describe(token)));
  ExprPtr expr = parse_tuple({.parenthesized = true});
  expect_op(")");
  expr->extent = {begin, tokens_.list[at_ - 1].extent.end};
  return expr;
}

ExprPtr ExpressionParser::parse_name() {
  const Token& token = next();
  const std::string& name = token.text;
  const std::size_t begin = token.extent.begin;
  if (name == "true" || name == "True") return make(begin, Literal{true});
  if (name == "false" || name == "False") return make(begin, Literal{false});
  if (name == "none" || name == "None") return make(begin, Literal{});
  return make(begin, Name{name, {}});
}

ExprPtr ExpressionParser::parse_strings() {
  const std::size_t begin = current().extent.begin;
  std::string text;
  while (current().type == TokenType::string) text += next().text;
  return make(begin, Literal{std::move(text)});
}

ExprPtr ExpressionParser::parse_list() {
  const std::size_t begin = next().extent.begin;
  std::vector<ExprPtr> items;
  while (!current().is_op("]")) {
    if (!items.empty()) expect_op(",");
    if (current().is_op("]")) break;
    items.push_back(parse_expression());
  }
  expect_op("]");
  return make(begin, ListDisplay{false, std::move(items)});
}

ExprPtr ExpressionParser::parse_dict() {
  const std::size_t begin = next().extent.begin;
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
  while (!current().is_op("}")) {
    if (!items.empty()) expect_op(",");
    if (current().is_op("}")) break;
    ExprPtr key = parse_expression();
    expect_op(":");
    items.emplace_back(std::move(key), parse_expression());
  }
  expect_op("}");
  return make(begin, DictDisplay{std::move(items)});
}

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
