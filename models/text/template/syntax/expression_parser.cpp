#include "models/text/template/syntax/expression_parser.h"

#include <fmt/core.h>

#include "models/text/template/syntax/children.h"

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

}  // namespace lathe::jinja
