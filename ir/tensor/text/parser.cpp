#include "ir/tensor/text/parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "ir/support/float_environment.h"
#include "ir/support/nearest.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/text/parser_detail.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

using namespace detail;

/// Recursive-descent parser for one graph; adds each value to a GraphBuilder as it is read.
class GraphParser {
 public:
  GraphParser(const Source& source, const OpSet& ops, const ParseLimits& limits)
      : in_(source, limits), ops_(ops), builder_(read_header()) {}

  Graph parse() {
    in_.expect("(");
    if (!in_.accept(")")) {
      do parse_argument();
      while (in_.accept(","));
      if (!in_.accept(")")) in_.fail_expected("',' or ')' after an argument");
    }
    in_.expect("{");
    while (!in_.accept("}")) parse_statement();
    if (in_.peek().kind != TokenKind::end) in_.fail_expected("the end of the text after the graph's '}'");
    Graph graph = builder_.finish();
    merge_checks(graph);
    return graph;
  }

 private:
  /// A check as written; `located` if it has its own loc(...).
  struct WrittenCheck {
    DimCheck check;
    bool located;
  };

  std::string read_header() {
    if (!in_.peek().is_word("graph"))
      in_.fail_expected("'graph'", "a program reads: graph @name(input %x: f32[n]) { ... }");
    in_.take();
    return in_.expect(TokenKind::graph_name, "the graph's name, such as @model").value;
  }

  Location text_location(const Token& at) const { return Location(in_.source().file(), at.line); }

  /// Runs `action` at `loc`, or at the text's own line if there is no `loc`; errors always name the text's line.
  template <class Action>
  auto located(const Token& at, const std::optional<Location>& loc, Action&& action) {
    const GraphBuilder::At scope(builder_, loc ? *loc : text_location(at));
    try {
      return action();
    } catch (const UserError& e) {
      if (e.location() == text_location(at)) throw;
      throw e.with_note(fmt::format("in {}:{}", in_.source().file(), at.line));
    }
  }

  /// Distinguishes ids from names: %"1" is not %1.
  static std::string key(const Token& value) {
    const bool id = !value.was_quoted && !value.value.empty() && value.value[0] >= '0' && value.value[0] <= '9';
    return (id ? "#" : "$") + value.value;
  }
  static bool is_name(const Token& value) { return key(value)[0] == '$'; }

  void define(const Token& token, const Value& value) {
    if (!values_.emplace(key(token), value).second)
      in_.fail(token, fmt::format("{} is defined already", token.spelling),
               "each value is defined once; rename this one");
  }

  Value parse_use() {
    const Token token = in_.expect(TokenKind::value, "a value, such as %x");
    const auto found = values_.find(key(token));
    if (found != values_.end()) return found->second;
    std::vector<std::string_view> names;
    if (is_name(token))
      for (const auto& [name, value] : values_)
        if (name[0] == '$') names.push_back(std::string_view(name).substr(1));
    std::sort(names.begin(), names.end());
    const std::string guess = did_you_mean(token.value, names);
    in_.fail(token, fmt::format("there is no value {} above this line", token.spelling),
             guess.empty() ? "a value is defined before it is used" : guess);
  }

  void check_room(const Token& at) const {
    if (static_cast<std::size_t>(builder_.graph().size()) >= in_.limits().nodes)
      in_.fail(at, fmt::format("the graph has more than {} values", in_.limits().nodes));
  }

  /// input %x: f32[n, d=512] [loc(...)]
  void parse_argument() {
    const Token kind = in_.peek();
    const Op* op = kind.kind == TokenKind::word ? find_op(kind.spelling) : nullptr;
    if (!op || !op->as<Argument>()) in_.fail_expected("input, parameter or state");
    in_.take();
    const Token token = in_.expect(TokenKind::value, "the argument's name, such as %x");
    if (!is_name(token))
      in_.fail(token, "an argument has a name, not a number", "write %\"1\" if it really is called 1");
    in_.expect(":");
    const WrittenType type = detail::parse_type(in_);
    if (type.strided) in_.fail_since(type.first, "an argument is never strided", "leave out strided");
    const std::optional<Location> loc = parse_location(in_);
    check_room(token);
    if (values_.count(key(token))) in_.fail(token, fmt::format("{} is defined already", token.spelling));
    define(token, located(token, loc, [&] { return builder_.argument(*op, token.value, type.dtype, type.shape); }));
  }

  void parse_statement() {
    if (in_.peek().kind == TokenKind::value) return parse_definition();
    if (in_.peek().is_word("output")) return parse_output();
    if (in_.peek().is_word("update")) return parse_update();
    if (in_.peek().is_word("check")) return parse_check();
    in_.fail_expected("a value to define, output, update, check or '}'");
  }

  const Op& parse_op_name() {
    const Token token = in_.expect(TokenKind::word, "the name of an op");
    const Op* op = ops_.find(token.spelling);
    if (op && op->as<Argument>())
      in_.fail(token, fmt::format("{} belongs in the graph's parentheses, not in its body", token.spelling));
    if (op) return *op;
    in_.fail(token, fmt::format("there is no op '{}'", token.spelling), unknown_op_hint(token.spelling));
  }

  /// Suggests a similar name. For a name with a dot, which must be a user-defined op, explains how to add it.
  std::string unknown_op_hint(std::string_view name) const {
    const std::vector<std::string_view> names = ops_.names();
    std::string guess = did_you_mean(name, names);
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos) return guess.empty() ? "docs/ops.md lists the ops" : guess;
    if (guess.empty()) guess = did_you_mean(name.substr(dot + 1), names);
    return fmt::format("{}{}a name with a dot is that of a program's own op: give parse_graph an OpSet that has it",
                       guess, guess.empty() ? "" : "\n  ");
  }

  /// %1 = op %a, %b {attr=1} [: type] [name("...")] [loc(...)]
  void parse_definition() {
    const Token token = in_.take();
    if (values_.count(key(token))) in_.fail(token, fmt::format("{} is defined already", token.spelling));
    in_.expect("=");
    const Op& op = parse_op_name();
    std::vector<Value> operands;
    if (in_.peek().kind == TokenKind::value) {
      do operands.push_back(parse_use());
      while (in_.accept(","));
    }
    Attributes attributes = parse_attributes(in_, op);
    std::optional<WrittenType> type;
    if (in_.accept(":")) type = detail::parse_type(in_);
    const std::optional<std::string> name = parse_name();
    const std::optional<Location> loc = parse_location(in_);
    check_room(token);
    const Value value = located(token, loc, [&] { return builder_.add(op, operands, std::move(attributes)); });
    if (type) check_type(*type, value);
    if (name)
      builder_.set_name(value, *name);
    else if (is_name(token))
      builder_.set_name(value, token.value);
    define(token, value);
  }

  /// name("scores") or nothing
  std::optional<std::string> parse_name() {
    if (!in_.accept_word("name")) return std::nullopt;
    in_.expect("(");
    Token name = in_.expect(TokenKind::text, "the user's name for the value, in double quotes");
    in_.expect(")");
    return std::move(name.value);
  }

  void check_type(const WrittenType& written, const Value& value) {
    const TensorType& inferred = value.type();
    if (written.dtype == inferred.dtype && written.shape == inferred.shape &&
        written.strided != inferred.is_contiguous() && (!written.strides || *written.strides == inferred.strides))
      return;
    std::string text = fmt::format("{}{}", lathe::name(written.dtype), written.shape.to_string());
    if (written.strided) text += " strided";
    if (written.strides) text += Shape(*written.strides).to_string();
    in_.source().fail(written.first.offset, written.first.spelling.size(),
                      fmt::format("the type is written as {}, but {} gives {}", text, value.node().op->name.value,
                                  print_type(inferred, written.strides.has_value())),
                      "write the type that the op gives, or leave it out");
  }

  /// output "logits" %3
  void parse_output() {
    const Token first = in_.take();
    const Token name = in_.expect(TokenKind::text, "the output's name in double quotes");
    const Value value = parse_use();
    located(first, std::nullopt, [&] { builder_.output(name.value, value); });
  }

  /// update %W <- %9
  void parse_update() {
    const Token first = in_.take();
    const Value state = parse_use();
    in_.expect("<-");
    const Value value = parse_use();
    located(first, std::nullopt, [&] { builder_.update(state, value); });
  }

  /// check n == m : matmul [matmul_inner] "message" [loc(...)]
  void parse_check() {
    const Token first = in_.take();
    const Dim left = detail::parse_dim(in_);
    DimCheck::Relation relation = DimCheck::Relation::equal;
    if (in_.accept("<="))
      relation = DimCheck::Relation::at_most;
    else if (!in_.accept("=="))
      in_.fail_expected("'==' or '<='");
    const Dim right = detail::parse_dim(in_);
    const auto word = [&](std::string_view what) {
      return in_.peek().kind == TokenKind::text ? in_.take().value
                                                : std::string(in_.expect(TokenKind::word, what).spelling);
    };
    in_.expect(":");
    std::string op = word("the op that needs this");
    in_.expect("[");
    std::string label = word("the label of the constraint");
    in_.expect("]");
    std::string message = in_.expect(TokenKind::text, "the message in double quotes").value;
    const std::optional<Location> loc = parse_location(in_);
    checks_.push_back({{left, right, relation, loc.value_or(text_location(first)), std::move(op), std::move(label),
                        std::move(message)},
                       loc.has_value()});
  }

  /// Restores the written checks in their order, then adds those raised by rules but missing in the text. A written
  /// check without loc(...) gets the location of the rule that raises it.
  void merge_checks(Graph& graph) {
    std::vector<DimCheck> raised = std::move(graph.checks);
    graph.checks.clear();
    for (WrittenCheck& written : checks_) {
      const auto same = [&](const DimCheck& r) {
        const DimCheck& w = written.check;
        return r.left == w.left && r.right == w.right && r.relation == w.relation && r.op == w.op &&
               r.label == w.label && (!written.located || r.loc == w.loc);
      };
      const auto found = std::find_if(raised.begin(), raised.end(), same);
      if (found != raised.end()) {
        written.check.loc = found->loc;
        raised.erase(found);
      }
      graph.checks.push_back(std::move(written.check));
    }
    graph.checks.insert(graph.checks.end(), raised.begin(), raised.end());
  }

  GraphTokens in_;
  const OpSet& ops_;
  GraphBuilder builder_;
  std::unordered_map<std::string, Value> values_;
  std::vector<WrittenCheck> checks_;
};

/// Parses all of `text` with `parse`.
template <class Parse>
auto parse_all(std::string_view text, std::string_view file, Parse&& parse) {
  const Source source(text, file);
  GraphTokens in(source, {});
  auto result = parse(in);
  if (in.peek().kind != TokenKind::end) in.fail_expected("the end of the text");
  return result;
}

}  // namespace

Graph parse_graph(std::string_view text, std::string_view file, const ParseLimits& limits) {
  return parse_graph(text, OpSet(), file, limits);
}

Graph parse_graph(std::string_view text, const OpSet& ops, std::string_view file, const ParseLimits& limits) {
  const FloatEnvironment environment;
  const Source source(text, file);
  if (text.size() > limits.bytes)
    throw ParseError(file, 1, 1,
                     fmt::format("the text has {} bytes, more than the {} allowed", text.size(), limits.bytes));
  return GraphParser(source, ops, limits).parse();
}

Dim parse_dim(std::string_view text, std::string_view file) {
  return parse_all(text, file, [](GraphTokens& in) { return detail::parse_dim(in); });
}

TensorType parse_type(std::string_view text, std::string_view file) {
  return parse_all(text, file, [](GraphTokens& in) {
    const WrittenType type = detail::parse_type(in);
    if (type.strided) in.fail_since(type.first, "a type alone is never strided");
    return TensorType::contiguous(type.dtype, type.shape);
  });
}

}  // namespace lathe::ir
