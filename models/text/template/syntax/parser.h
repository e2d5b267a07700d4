#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/template/syntax/ast.h"
#include "models/text/template/syntax/lexer.h"

namespace lathe::jinja {

/// Recursive-descent parser for expressions. Precedence as in Jinja, from lowest to highest: if-else, or, and, not,
/// comparisons and in, + -, ~, * / // %, **, filters (|) and tests (is), unary + -, and the postfixes .name [index]
/// (call).
class ExpressionParser {
 public:
  /// Maximum height of a tree, and maximum nesting of brackets and blocks.
  static constexpr int max_height = 200, max_nesting = 100;

 protected:
  explicit ExpressionParser(const Source& source) : source_(source), tokens_(tokenize(source)) {}

  /// Returns the current token. Throws the stored ParseError if the parser has reached it.
  const Token& current() const {
    if (tokens_.list[at_].type == TokenType::fault) std::rethrow_exception(tokens_.fault);
    return tokens_.list[at_];
  }
  const Token& look() const { return tokens_.list[std::min(at_ + 1, tokens_.list.size() - 1)]; }
  const Token& next() {
    const Token& token = current();
    if (token.type != TokenType::end) ++at_;
    return token;
  }
  bool skip_op(std::string_view symbol);
  bool skip_name(std::string_view name);
  const Token& expect(TokenType type, std::string_view described);
  void expect_op(std::string_view symbol);
  void expect_name(std::string_view name);
  [[noreturn]] void fail(const Token& at, std::string_view message, std::string_view hint = {}) const {
    source_.fail(at.extent.begin, message, hint);
  }

  [[noreturn]] void fail_expected(std::string_view described) const;

  struct TupleRules {
    bool conditional = true;         ///< `a if b else c` is allowed
    std::string_view end_name = {};  ///< a word that also ends the tuple
    bool parenthesized = false;      ///< in parentheses, so it may be empty
  };
  /// Parses comma-separated expressions. Returns a single expression without a comma as it is.
  ExprPtr parse_tuple(const TupleRules& rules);
  ExprPtr parse_expression(bool conditional = true);
  /// Parses | name(..) | name(..). `subject` may be null. If `first`, the first | is absent.
  ExprPtr parse_filters(ExprPtr subject, bool first);
  bool is_tuple_end(std::string_view end_name) const;

  /// Tracks the recursion depth of the parser.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

  const Source& source_;

 private:
  ExprPtr make(std::size_t begin, Expr::Node node);
  ExprPtr parse_conditional();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_comparison();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_strings();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr expr);
  ExprPtr parse_subscript(ExprPtr object);
  ExprPtr parse_filters_and_tests(ExprPtr expr);
  ExprPtr parse_test(ExprPtr subject);
  ExprPtr parse_call(ExprPtr callee);
  CallArguments parse_arguments();

  Tokens tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

/// Parses a template and binds its variables (scopes.h). Throws ParseError "NAME:LINE:COLUMN: ...".
std::shared_ptr<const Program> parse_program(std::string_view text, std::string_view name);

}  // namespace lathe::jinja
