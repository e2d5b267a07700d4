#include "ir/tensor/text/parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "ir/support/nearest.h"
#include "ir/support/numbers/float_environment.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/text/parser_detail.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

using namespace detail;

/// Returns the node of a value with what the text has of it.
Node as_written(const Value& value, const InlineList<ValueId, 4>& operands, const std::optional<WrittenType>& type,
                std::string_view name, const Location& loc) {
  Node node = value.node();
  node.operands = operands;
  if (type) node.type.shape = type->shape;
  node.name = name;
  node.loc = loc;
  return node;
}

/// Recursive-descent parser for one graph; adds each value to a GraphBuilder as it is read, and to the graph as
/// written.
class GraphParser {
 public:
  /// Reads the name of a graph or, with `depth` > 0, of a body in that many graphs.
  GraphParser(GraphTokens& in, const OpSet& ops, int depth = 0)
      : in_(in), ops_(ops), depth_(depth), builder_(read_header()) {}

  Graph parse() {
    parse_text();
    if (depth_ == 0 && in_.peek().kind != TokenKind::end)
      in_.fail_expected("the end of the text after the graph's '}'");
    Graph graph = builder_.finish();
    merge_checks(graph);
    return graph;
  }

  LabelledGraph parse_written() {
    as_written_ = true;
    parse_text();
    LabelledGraph result;
    result.graph.name = builder_.graph().name;
    const std::vector<ValueId> position = written_positions();
    const auto now = [&](ValueId id) { return position[id.index]; };
    std::vector<ValueId> from(position.size());
    for (const ValueId id : all_values(written_)) from[now(id).index] = id;
    for (const ValueId id : from) {
      result.graph.nodes.push_back(written_[id]);
      for (ValueId& operand : result.graph.nodes.back().operands) operand = now(operand);
    }
    for (const Output& output : written_.outputs) result.graph.outputs.push_back({output.name, now(output.value)});
    for (const Update& update : written_.updates)
      result.graph.updates.push_back({now(update.state), now(update.value)});
    for (WrittenCheck& written : checks_) result.graph.checks.push_back(std::move(written.check));
    for (const auto& [label, defined] : values_) result.ids.emplace(label, now(defined.id));
    return result;
  }

 private:
  /// A value of the builder, and its node in the graph as written.
  struct Defined {
    Value value;
    ValueId id;
  };

  /// Returns the position of each node as its label gives it, or the order of the text if the labels are not
  /// positions in a topological order.
  std::vector<ValueId> written_positions() const {
    const auto count = static_cast<std::size_t>(written_.size());
    std::vector<ValueId> position(count), plain;
    for (const ValueId id : all_values(written_)) plain.push_back(id);
    std::vector<bool> taken(count, false);
    for (const auto& [label, defined] : values_) {
      if (label[0] != '#') continue;
      std::size_t at = 0;
      const char* const end = label.data() + label.size();
      const auto [stop, error] = std::from_chars(label.data() + 1, end, at);
      if (error != std::errc() || stop != end || at >= count || taken[at]) return plain;
      taken[at] = true;
      position[defined.id.index] = {static_cast<std::int32_t>(at)};
    }
    std::size_t free = 0;
    for (ValueId& each : position) {
      if (each.valid()) continue;
      while (taken[free]) ++free;
      each = {static_cast<std::int32_t>(free++)};
    }
    for (const ValueId id : plain)
      for (const ValueId operand : written_[id].operands)
        if (position[operand.index] >= position[id.index]) return plain;
    return position;
  }

  void parse_text() {
    in_.expect("(");
    if (!in_.accept(")")) {
      do parse_argument();
      while (in_.accept(","));
      if (!in_.accept(")")) in_.fail_expected("',' or ')' after an argument");
    }
    in_.expect("{");
    while (!in_.accept("}")) parse_statement();
  }

  std::string read_header() {
    if (depth_ == 0 && !in_.peek().is_word("graph"))
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

  static bool is_name(const Token& value) { return label_key(value)[0] == '$'; }

  void define(const Token& token, const Value& value, const Node& written) {
    written_.nodes.push_back(written);
    if (!values_.emplace(label_key(token), Defined{value, {written_.size() - 1}}).second)
      in_.fail(token, fmt::format("{} is defined already", token.spelling),
               "each value is defined once; rename this one");
  }

  Defined parse_use() {
    const Token token = in_.expect(TokenKind::value, "a value, such as %x");
    const auto found = values_.find(label_key(token));
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
    if (values_.count(label_key(token))) in_.fail(token, fmt::format("{} is defined already", token.spelling));
    const Value value =
        located(token, loc, [&] { return builder_.argument(*op, token.value, type.dtype, type.shape); });
    define(token, value, as_written(value, {}, type, value.node().name, loc.value_or(text_location(token))));
  }

  void parse_statement() {
    if (in_.peek().kind == TokenKind::value) return parse_definition();
    if (in_.peek().is_word("output")) return parse_output();
    if (in_.peek().is_word("update")) return parse_update();
    if (in_.peek().is_word("check")) return checks_.push_back(detail::parse_check(in_));
    if (in_.peek().is_word("body")) return parse_body();
    in_.fail_expected("a value to define, output, update, check, body or '}'");
  }

  /// body @step(state %h: f32[n], input %x: f32[n]) { ... }
  void parse_body() {
    const Token first = in_.peek();
    if (depth_ >= in_.limits().nesting)
      in_.fail(first, fmt::format("bodies are nested more than {} deep", in_.limits().nesting));
    auto outer = std::exchange(in_.bodies(), {});
    GraphParser inner(in_, ops_, depth_ + 1);
    Graph graph = as_written_ ? inner.parse_written().graph : inner.parse();
    in_.bodies() = std::move(outer);
    if (in_.bodies().contains(graph.name))
      in_.fail(first, fmt::format("there is a body @{} already", graph.name),
               "each body has a name of its own; rename this one");
    std::string name = graph.name;
    in_.bodies().emplace(std::move(name), Body(std::move(graph)));
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
    return fmt::format(
        "{}{}a name with a dot is that of a program's own op: give parse_graph an OpSet that has it, or the command "
        "--ops",
        guess, guess.empty() ? "" : "\n  ");
  }

  /// %1 = op %a, %b {attr=1} [: type] [name("...")] [loc(...)]
  void parse_definition() {
    const Token token = in_.take();
    if (values_.count(label_key(token))) in_.fail(token, fmt::format("{} is defined already", token.spelling));
    in_.expect("=");
    const Op& op = parse_op_name();
    std::vector<Value> operands;
    InlineList<ValueId, 4> ids;
    if (in_.peek().kind == TokenKind::value) {
      do {
        const Defined operand = parse_use();
        operands.push_back(operand.value);
        ids.push_back(operand.id);
      } while (in_.accept(","));
    }
    Attributes attributes = parse_attributes(in_, op);
    std::optional<WrittenType> type;
    if (in_.accept(":")) type = detail::parse_type(in_);
    const std::optional<std::string> name = parse_name();
    const std::optional<Location> loc = parse_location(in_);
    check_room(token);
    const Value value = located(token, loc, [&] { return builder_.add(op, operands, std::move(attributes)); });
    if (type) check_type(*type, value);
    const std::string given = name.value_or(is_name(token) ? token.value : "");
    if (name || is_name(token)) builder_.set_name(value, given);
    define(token, value, as_written(value, ids, type, given, loc.value_or(text_location(token))));
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
    const Defined defined = parse_use();
    located(first, std::nullopt, [&] { builder_.output(name.value, defined.value); });
    written_.outputs.push_back({name.value, defined.id});
  }

  /// update %W <- %9
  void parse_update() {
    const Token first = in_.take();
    const Defined state = parse_use();
    in_.expect("<-");
    const Defined defined = parse_use();
    located(first, std::nullopt, [&] { builder_.update(state.value, defined.value); });
    written_.updates.push_back({state.id, defined.id});
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

  GraphTokens& in_;
  const OpSet& ops_;
  int depth_;
  bool as_written_ = false;
  GraphBuilder builder_;
  Graph written_;
  std::unordered_map<std::string, Defined> values_;
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
  GraphTokens in(source, limits);
  return GraphParser(in, ops).parse();
}

namespace detail {

std::string label_key(const Token& label) {
  const bool id = !label.was_quoted && !label.value.empty() && label.value[0] >= '0' && label.value[0] <= '9';
  return (id ? "#" : "$") + label.value;
}

ValueId LabelledGraph::find(const Token& label) const {
  const auto found = ids.find(label_key(label));
  return found == ids.end() ? ValueId() : found->second;
}

LabelledGraph parse_written_graph(GraphTokens& in) {
  const FloatEnvironment environment;
  return GraphParser(in, OpSet()).parse_written();
}

}  // namespace detail

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
