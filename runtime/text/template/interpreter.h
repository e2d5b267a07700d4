#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/text/template/syntax/ast.h"
#include "runtime/text/template/template.h"
#include "runtime/text/template/values/object.h"

namespace lathe::jinja {

class LoopWatcher;
class Namespace;

/// The variables of one run of a function.
struct Frame {
  std::vector<Value> slots;
  std::shared_ptr<Frame> outer;
};
using FramePtr = std::shared_ptr<Frame>;

/// Runs a program once, by walking its tree.
class Interpreter {
 public:
  /// All outlive the interpreter.
  Interpreter(const Program& program, const Value& variables, const RenderOptions& options, Runtime& runtime)
      : program_(program), source_(program.source), variables_(variables), options_(options), runtime_(runtime) {}

  Rendered run();
  /// The same; the text stays in text().
  void execute();

  /// The text that a macro makes of its arguments. `outer` is the frame in which it was defined.
  std::string call_macro(const MacroDef& macro, const FramePtr& outer, const Arguments& given);
  /// Whether a loop's condition holds for an item, in a frame made by enter_filter.
  bool passes(const For& loop, const FramePtr& frame, const Value& item);
  FramePtr enter_filter(const For& loop, const FramePtr& outer);

  // For loop watchers.
  void set_watcher(LoopWatcher* watcher) { watcher_ = watcher; }
  Runtime& runtime() { return runtime_; }
  const Program& program() const { return program_; }
  const FramePtr& frame() const { return frame_; }
  const std::map<std::string, Value>& functions() const { return functions_; }
  const std::string& text() const { return root_; }
  /// Adds bytes to the size of the output that text() does not have.
  void skip_output(std::size_t bytes);

 private:
  enum class Flow : std::uint8_t { normal, break_loop, continue_loop };

  /// Sets a member for as long as this lives.
  template <class T>
  class Restore {
   public:
    Restore(T& member, T value) : member_(member), before_(std::exchange(member, std::move(value))) {}
    ~Restore() { member_ = std::move(before_); }
    Restore(const Restore&) = delete;
    Restore& operator=(const Restore&) = delete;

   private:
    T& member_;
    T before_;
  };

  /// Runs `action`, whose Failure becomes a TemplateError at `extent`.
  template <class Action>
  auto located(Extent extent, const Action& action) -> decltype(action());

  // Statements.
  Flow run(const Block& block);
  Flow run(const TextStatement& text);
  Flow run(const Print& print);
  Flow run(const For& loop);
  Flow run(const If& branches);
  Flow run(const Set& set);
  Flow run(const SetBlock& set);
  Flow run(const Macro& macro);
  Flow run(const CallBlock& block);
  Flow run(const FilterBlock& filter);
  Flow run(const Generation& generation);
  Flow run(const With& with);
  Flow run(const Break&) { return Flow::break_loop; }
  Flow run(const Continue&) { return Flow::continue_loop; }
  /// Runs a block in a scope of its own; what it writes goes to `text`.
  Flow collect(const Block& block, std::string& text);
  void write(std::string_view text);
  void check_output() const;
  void assign(const Target& target, const Value& value);
  Namespace& namespace_of(const Target& target);
  /// Before the value is computed, as in Jinja: targets with attributes belong to namespaces.
  void check_namespaces(const Target& target);

  // Expressions.
  Value eval(const Expr& expr);
  Value eval(const ExprPtr& expr) { return expr ? eval(*expr) : Value(); }
  Value eval(const Literal& literal) const { return literal.value; }
  Value eval(const Name& name);
  Value eval(const ListDisplay& list);
  Value eval(const DictDisplay& dict);
  Value eval(const Attribute& attribute);
  Value eval(const Subscript& subscript);
  Value eval(const SliceExpr& slice);
  Value eval(const Call& node);
  Value eval(const FilterUse& use);
  Value eval(const TestUse& use);
  Value eval(const UnaryExpr& node);
  Value eval(const BinaryExpr& node);
  Value eval(const Not& negation);
  Value eval(const Logical& logical);
  Value eval(const Comparison& comparison);
  Value eval(const Concat& concat);
  Value eval(const Conditional& conditional);
  bool compare(Comparator comparator, const Value& a, const Value& b);
  bool is_namespace_attribute(const Expr& expr);
  /// Compares two values. If one is an attribute of a namespace, records what the result requires of it.
  bool compare_recorded(const Comparison& comparison);
  Value call(const Value& callee, const Arguments& given);
  Arguments arguments(const CallArguments& given);

  // Variables.
  Value& variable(Slot slot);
  void enter(const Scope& scope);
  void leave(const Scope& scope);
  Value input(const std::string& name);

  const Program& program_;
  const Source& source_;
  const Value& variables_;
  const RenderOptions& options_;
  Runtime& runtime_;
  FramePtr frame_;
  std::string root_;  ///< the text so far
  std::string* out_ = &root_;
  std::size_t skipped_ = 0;  ///< bytes of skip_output()
  LoopWatcher* watcher_ = nullptr;
  Value filtered_;  ///< the text to which the filters of a block apply
  std::vector<TextSpan> assistant_;
  std::map<std::string, Value> functions_;  ///< those of all templates, as far as this one has asked for them
};

}  // namespace lathe::jinja
