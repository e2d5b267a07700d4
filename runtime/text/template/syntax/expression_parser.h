#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/template/syntax/ast.h"
#include "runtime/text/template/syntax/token.h"

namespace lathe::jinja {

/// Parses expressions by recursive descent, with the precedence of Jinja: if-else, or, and, not, comparisons and in,
/// + -, ~, * / // %, **, unary + -, then .name [index] (call), last | filters and is tests, which bind tighter than
/// all of these but for unary signs.
class ExpressionParser {
 public:
  /// Trees are no higher, and brackets and blocks nest no deeper.
  static constexpr int max_height = 200, max_nesting = 100;

 protected:
  explicit ExpressionParser(const Source& source) : source_(source), tokens_(tokenize(source)) {}

  /// Throws the fault of the text where it is reached.
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
    bool conditional = true;         ///< `a if b else c` may stand there
    std::string_view end_name = {};  ///< a word that ends the tuple too
    bool parenthesized = false;      ///< so that it may be empty
  };
  /// Expressions with commas between them; one without a comma is itself.
  ExprPtr parse_tuple(const TupleRules& rules);
  ExprPtr parse_expression(bool conditional = true);
  /// | name(..) | name(..): `subject` may be null. `first` says that the first | is left out.
  ExprPtr parse_filters(ExprPtr subject, bool first);
  bool is_tuple_end(std::string_view end_name) const;

  /// Counts how deep the parser is within itself.
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

}  // namespace lathe::jinja
