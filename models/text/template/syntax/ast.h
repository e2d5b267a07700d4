#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/text/template/syntax/lexer.h"
#include "models/text/template/values/value.h"
#include "models/text/template/values/value_operators.h"

/// Syntax tree of a template. The parser builds it; then scopes.h assigns a slot to each variable.
namespace lathe::jinja {

struct Expr;
struct FilterEntry;
struct Statement;
struct TestEntry;

using ExprPtr = std::unique_ptr<Expr>;
using Block = std::vector<Statement>;

/// Slot of a variable: `index` in the frame of the function that is `hops` levels further out.
struct Slot {
  int hops = 0;
  int index = -1;
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
  Slot slot;
};
/// [...] or (...)
struct ListDisplay {
  bool tuple = false;
  std::vector<ExprPtr> items;
};
struct DictDisplay {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Subscript {
  ExprPtr object, index;
};
/// object[start:stop:step]; each bound may be null.
struct SliceExpr {
  ExprPtr object, start, stop, step;
};
struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr rest, named_rest;  ///< *rest, **named_rest; may be null
};
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
/// subject | name(arguments). In {% filter %} and {% set %}, the innermost subject is null and represents the block's
/// text.
struct FilterUse {
  ExprPtr subject;
  std::string name;
  CallArguments arguments;
  const FilterEntry* entry = nullptr;  ///< null if no filter has that name
};
/// subject is name(arguments)
struct TestUse {
  ExprPtr subject;
  std::string name;
  CallArguments arguments;
  const TestEntry* entry = nullptr;
};
struct UnaryExpr {
  UnaryOp op;
  ExprPtr operand;
};
struct BinaryExpr {
  BinaryOp op;
  ExprPtr left, right;
};
struct Not {
  ExprPtr operand;
};
/// and, or: evaluates to one of its operands.
struct Logical {
  bool is_and;
  ExprPtr left, right;
};
enum class Comparator : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
/// first op operand op operand ...
struct Comparison {
  ExprPtr first;
  std::vector<std::pair<Comparator, ExprPtr>> rest;
};
struct Concat {
  std::vector<ExprPtr> parts;
};
/// `then` if `test` else `otherwise`; `otherwise` may be null.
struct Conditional {
  ExprPtr test, then, otherwise;
};

struct Expr {
  using Node = std::variant<Literal, Name, ListDisplay, DictDisplay, Attribute, Subscript, SliceExpr, Call, FilterUse,
                            TestUse, UnaryExpr, BinaryExpr, Not, Logical, Comparison, Concat, Conditional>;
  Extent extent;
  int height = 1;  ///< height of the subtree, including this node
  Node node;
};

/// Target of an assignment: a name, an attribute of a namespace, or several targets.
struct Target {
  Extent extent;
  Name name;              ///< of the variable or the namespace
  std::string attribute;  ///< set for an attribute of a namespace
  bool tuple = false;     ///< values are unpacked to `items`
  std::vector<Target> items;
};

/// Initialization of a variable when its scope is entered. As in Jinja, this is static: a variable that a scope
/// assigns is local from the start of the scope.
struct Load {
  enum class From : std::uint8_t {
    argument,  ///< set by the construct that enters the scope
    inputs,    ///< the inputs of the template, then the standard functions
    outer,     ///< the variable of that name in an outer scope
    nothing,   ///< no value yet
  };
  From from = From::nothing;
  int index = -1;  ///< in the frame
  std::string name;
  Slot outer;
};
/// All variables of a scope.
using Scope = std::vector<Load>;

/// A construct with its own frame: the template, a macro, a call block, the condition of a loop.
struct Function {
  int size = 0;  ///< of the frame
  Scope scope;
  Block body;
};

struct Parameter {
  Name name;
  ExprPtr initial;  ///< may be null
};

struct TextStatement {
  std::string text;
};
struct Print {
  ExprPtr value;
};
struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  ///< may be null
  Function filter;    ///< the frame in which `condition` is evaluated
  Target filter_target;
  Block body, otherwise;
  Scope scope, otherwise_scope;
  Slot loop;
};
struct If {
  std::vector<std::pair<ExprPtr, Block>> branches;
  Block otherwise;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filters;  ///< a FilterUse; may be null
  Block body;
  Scope scope;
};
/// A macro; also the body of {% call %} and {% generation %}, which have no name.
struct MacroDef {
  std::string name;
  std::vector<Parameter> parameters;
  Function function;
  int caller = -1, kwargs = -1, varargs = -1;  ///< index in the frame if the body reads them, else -1
};
struct Macro {
  Slot slot;
  std::unique_ptr<MacroDef> macro;
};
struct CallBlock {
  ExprPtr call;  ///< a Call
  std::unique_ptr<MacroDef> macro;
};
struct FilterBlock {
  ExprPtr filters;
  Block body;
  Scope scope;
};
struct Generation {
  std::unique_ptr<MacroDef> macro;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Block body;
  Scope scope;
};
struct Break {};
struct Continue {};

struct Statement {
  using Node = std::variant<TextStatement, Print, For, If, Set, SetBlock, Macro, CallBlock, FilterBlock, Generation,
                            With, Break, Continue>;
  Extent extent;
  Node node;
};

struct Program {
  explicit Program(Source text) : source(std::move(text)) {}
  Source source;
  Function main;
  bool marks_generation = false;
};

/// Calls visit(Expr&) for each direct child expression, in source order.
template <class Visit>
class ChildVisitor {
 public:
  explicit ChildVisitor(const Visit& visit) : visit_(visit) {}

  void operator()(Literal&) const {}
  void operator()(Name&) const {}
  void operator()(ListDisplay& node) const { all(node.items); }
  void operator()(DictDisplay& node) const {
    for (auto& [key, value] : node.items) one(key), one(value);
  }
  void operator()(Attribute& node) const { one(node.object); }
  void operator()(Subscript& node) const { one(node.object), one(node.index); }
  void operator()(SliceExpr& node) const { one(node.object), one(node.start), one(node.stop), one(node.step); }
  void operator()(Call& node) const { one(node.callee), arguments(node.arguments); }
  void operator()(FilterUse& node) const { one(node.subject), arguments(node.arguments); }
  void operator()(TestUse& node) const { one(node.subject), arguments(node.arguments); }
  void operator()(UnaryExpr& node) const { one(node.operand); }
  void operator()(BinaryExpr& node) const { one(node.left), one(node.right); }
  void operator()(Not& node) const { one(node.operand); }
  void operator()(Logical& node) const { one(node.left), one(node.right); }
  void operator()(Comparison& node) const {
    one(node.first);
    for (auto& [op, operand] : node.rest) one(operand);
  }
  void operator()(Concat& node) const { all(node.parts); }
  void operator()(Conditional& node) const { one(node.then), one(node.test), one(node.otherwise); }

 private:
  void one(const ExprPtr& expr) const {
    if (expr) visit_(*expr);
  }
  void all(const std::vector<ExprPtr>& list) const {
    for (const ExprPtr& expr : list) one(expr);
  }
  void arguments(const CallArguments& given) const {
    all(given.positional);
    for (const auto& [name, value] : given.named) one(value);
    one(given.rest);
    one(given.named_rest);
  }

  const Visit& visit_;
};

template <class Visit>
void for_each_child(Expr& expr, const Visit& visit) {
  std::visit(ChildVisitor<Visit>(visit), expr.node);
}

}  // namespace lathe::jinja
