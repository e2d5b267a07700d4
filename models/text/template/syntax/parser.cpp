#include "models/text/template/syntax/parser.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/syntax/scopes.h"

namespace lathe::jinja {

namespace {

/// Tags that end a block.
using Ends = std::vector<std::string_view>;

class Parser : private ExpressionParser {
 public:
  explicit Parser(Program& program) : ExpressionParser(program.source), program_(program) {}

  void run() { program_.main.body = parse_block({}); }

 private:
  /// Parses statements up to one of `ends`, which becomes the current token. Without `ends`, parses to the end of the
  /// template.
  Block parse_block(const Ends& ends) {
    const Nesting nesting(*this);
    Block body;
    for (;;) {
      const Token& token = current();
      switch (token.type) {
        case TokenType::data:
          body.push_back({token.extent, TextStatement{token.text}});
          next();
          break;
        case TokenType::variable_begin: body.push_back(parse_print()); break;
        case TokenType::block_begin:
          next();
          if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return current().is_name(end); })) return body;
          body.push_back(parse_statement(ends));
          expect(TokenType::block_end, "end of statement block");
          break;
        default:  // the lexer emits no other tokens between tags
          if (!ends.empty()) fail_end({}, ends);
          return body;
      }
    }
  }

  /// Parses the rest of a tag and the statements up to one of `ends`. Returns the end tag's name and skips that tag.
  std::pair<Block, std::string> parse_body(const Ends& ends) {
    skip_op(":");
    expect(TokenType::block_end, "end of statement block");
    Block body = parse_block(ends);
    return {std::move(body), next().text};
  }

  Statement parse_print() {
    const std::size_t begin = next().extent.begin;
    ExprPtr value = parse_tuple({});
    const Extent end = expect(TokenType::variable_end, "end of print statement").extent;
    return {{begin, end.end}, Print{std::move(value)}};
  }

  Print parse_print_tag() {
    ExprPtr value = parse_expression();
    if (current().is_op(","))
      fail(current(), "{% print %} of several values is not supported", "write {{ a }}{{ b }}");
    return {std::move(value)};
  }

  Statement parse_statement(const Ends& ends) {
    const Token& tag = current();
    if (tag.type != TokenType::name) fail(tag, "tag name expected");
    open_tags_.push_back(tag.text);
    Statement statement;
    statement.node = parse_node(tag, ends);
    statement.extent = {tag.extent.begin, current().extent.begin};
    open_tags_.pop_back();
    return statement;
  }

  Statement::Node parse_node(const Token& tag, const Ends& ends) {
    next();
    if (tag.text == "if") return parse_if();
    if (tag.text == "for") return parse_for();
    if (tag.text == "set") return parse_set();
    if (tag.text == "macro") return parse_macro();
    if (tag.text == "call") return parse_call_block(tag);
    if (tag.text == "filter") return parse_filter_block();
    if (tag.text == "with") return parse_with();
    if (tag.text == "generation") return parse_generation();
    if (tag.text == "break") return parse_loop_control(tag, Break{});
    if (tag.text == "continue") return parse_loop_control(tag, Continue{});
    if (tag.text == "print") return parse_print_tag();
    for (const std::string_view other : {"include", "import", "from", "extends", "block"})
      if (tag.text == other)
        fail(tag, fmt::format("{{% {} %}} needs other templates, and a chat template is one by itself", other));
    if (tag.text == "autoescape") fail(tag, "{% autoescape %} is not supported", "chat templates write plain text");
    open_tags_.pop_back();
    fail_end(tag.text, ends, &tag);
  }

  [[noreturn]] void fail_end(std::string_view tag, const Ends& ends, const Token* at = nullptr) const {
    std::string message =
        tag.empty() ? "Unexpected end of template." : fmt::format("Encountered unknown tag '{}'.", tag);
    std::string looked_for;
    for (const std::string_view end : ends)
      looked_for += fmt::format("{}'{}'", looked_for.empty() ? "" : " or ", end);
    if (!ends.empty()) message += fmt::format(" Jinja was looking for the following tags: {}.", looked_for);
    if (!open_tags_.empty())
      message += fmt::format(" The innermost block that needs to be closed is '{}'.", open_tags_.back());
    fail(at ? *at : current(), message);
  }

  If parse_if() {
    If node;
    for (;;) {
      ExprPtr test = parse_tuple({.conditional = false});
      auto [body, end] = parse_body({"elif", "else", "endif"});
      node.branches.emplace_back(std::move(test), std::move(body));
      if (end == "elif") continue;
      if (end == "else") node.otherwise = parse_body({"endif"}).first;
      return node;
    }
  }

  For parse_for() {
    For node;
    node.target = parse_target("in", false);
    expect_name("in");
    node.iterable = parse_tuple({.conditional = false, .end_name = "recursive"});
    if (skip_name("if")) node.condition = parse_expression();
    if (current().is_name("recursive")) fail(current(), "recursive loops are not supported", "use a macro");
    ++loops_;
    auto [body, end] = parse_body({"endfor", "else"});
    --loops_;
    node.body = std::move(body);
    if (end == "else") node.otherwise = parse_body({"endfor"}).first;
    return node;
  }

  Statement::Node parse_loop_control(const Token& tag, Statement::Node node) const {
    if (loops_ == 0) fail(tag, fmt::format("'{}' outside loop", tag.text));
    return node;
  }

  Statement::Node parse_set() {
    Target target = parse_target({}, true);
    if (skip_op("=")) {
      ExprPtr value = parse_tuple({});
      return Set{std::move(target), std::move(value)};
    }
    ExprPtr filters = parse_filters(nullptr, false);
    Block body = parse_body({"endset"}).first;
    return SetBlock{.target = std::move(target), .filters = std::move(filters), .body = std::move(body), .scope = {}};
  }

  /// Parses comma-separated names, optionally in brackets. If `attributes`, allows attributes of namespaces.
  Target parse_target(std::string_view end_name, bool attributes) {
    const Nesting nesting(*this);
    const std::size_t begin = current().extent.begin;
    Target all{.extent = {}, .name = {}, .attribute = {}, .tuple = false, .items = {}};
    while (!is_tuple_end(end_name)) {
      all.items.push_back(parse_single_target(attributes));
      if (!current().is_op(",")) break;
      next();
      all.tuple = true;
    }
    if (all.items.empty()) fail(current(), fmt::format("Expected an expression, got '{}'", describe(current())));
    if (!all.tuple) return Target(all.items.front());
    all.extent = {begin, current().extent.begin};
    return all;
  }

  Target parse_single_target(bool attributes) {
    const Token& token = current();
    if (skip_op("(")) {
      Target target = parse_target({}, attributes);
      expect_op(")");
      return target;
    }
    static constexpr std::string_view constants[] = {"true", "True", "false", "False", "none", "None"};
    const bool constant = std::find(std::begin(constants), std::end(constants), token.text) != std::end(constants);
    if (token.type != TokenType::name || constant) fail(token, fmt::format("can't assign to '{}'", describe(token)));
    next();
    Target target{.extent = token.extent, .name = {token.text, {}}, .attribute = {}, .tuple = false, .items = {}};
    if (attributes && skip_op(".")) {
      const Token& attribute = expect(TokenType::name, "name");
      target.attribute = attribute.text;
      target.extent.end = attribute.extent.end;
    }
    return target;
  }

  /// Parses (name, name = default, ..).
  void parse_signature(MacroDef& macro) {
    expect_op("(");
    while (!current().is_op(")")) {
      if (!macro.parameters.empty()) expect_op(",");
      const Token& name = expect(TokenType::name, "name");
      Parameter parameter{{name.text, {}}, nullptr};
      for (const Parameter& other : macro.parameters)
        if (other.name.name == name.text) fail(name, fmt::format("duplicate argument '{}'", name.text));
      if (skip_op("="))
        parameter.initial = parse_expression();
      else if (!macro.parameters.empty() && macro.parameters.back().initial)
        fail(name, "non-default argument follows default argument");
      macro.parameters.push_back(std::move(parameter));
    }
    expect_op(")");
  }

  /// Parses the body of a function. Its statements cannot break out of loops outside of it.
  void parse_function(MacroDef& macro, const char* end) {
    const int loops = std::exchange(loops_, 0);
    macro.function.body = parse_body({end}).first;
    loops_ = loops;
  }

  Macro parse_macro() {
    auto macro = std::make_unique<MacroDef>();
    macro->name = expect(TokenType::name, "name").text;
    parse_signature(*macro);
    parse_function(*macro, "endmacro");
    return {{}, std::move(macro)};
  }

  CallBlock parse_call_block(const Token& tag) {
    auto macro = std::make_unique<MacroDef>();
    if (current().is_op("(")) parse_signature(*macro);
    ExprPtr call = parse_expression();
    if (!std::holds_alternative<Call>(call->node)) fail(tag, "expected call");
    parse_function(*macro, "endcall");
    return {std::move(call), std::move(macro)};
  }

  Generation parse_generation() {
    auto macro = std::make_unique<MacroDef>();
    parse_function(*macro, "endgeneration");
    program_.marks_generation = true;
    return {std::move(macro)};
  }

  FilterBlock parse_filter_block() {
    ExprPtr filters = parse_filters(nullptr, true);
    Block body = parse_body({"endfilter"}).first;
    return {.filters = std::move(filters), .body = std::move(body), .scope = {}};
  }

  With parse_with() {
    With node;
    while (current().type != TokenType::block_end) {
      if (!node.assignments.empty()) expect_op(",");
      Target target = parse_target({}, false);
      expect_op("=");
      node.assignments.emplace_back(std::move(target), parse_expression());
    }
    node.body = parse_body({"endwith"}).first;
    return node;
  }

  Program& program_;
  std::vector<std::string> open_tags_;
  int loops_ = 0;  ///< number of loops around the current token in its function
};

}  // namespace

std::shared_ptr<const Program> parse_program(std::string_view text, std::string_view name) {
  auto program = std::make_shared<Program>(Source(text, name));
  Parser(*program).run();
  bind_variables(*program);
  return program;
}

}  // namespace lathe::jinja
