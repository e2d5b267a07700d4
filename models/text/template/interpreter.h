#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/text/template/syntax/ast.h"
#include "models/text/template/template.h"
#include "models/text/template/values/object.h"

namespace lathe::jinja {

class LoopWatcher;
class Namespace;

/// Variables of one call of a function.
struct Frame {
  std::vector<Value> slots;
  std::shared_ptr<Frame> outer;
};
using FramePtr = std::shared_ptr<Frame>;

/// Runs a program once by walking its syntax tree.
class Interpreter {
 public:
  /// All references must outlive the interpreter.
  Interpreter(const Program& program, const Value& variables, const RenderOptions& options, Runtime& runtime)
      : program_(program), source_(program.source), variables_(variables), options_(options), runtime_(runtime) {}

  Rendered run();
  /// Runs the program without copying the output, which text() returns.
  void execute();

  /// Returns the output of a macro. `outer` is the frame in which the macro was defined.
  std::string call_macro(const MacroDef& macro, const FramePtr& outer, const Arguments& given);
  /// Returns whether a loop's condition holds for an item. `frame` must come from enter_filter().
  bool passes(const For& loop, const FramePtr& frame, const Value& item);
  FramePtr enter_filter(const For& loop, const FramePtr& outer);

  // For loop watchers.
  void set_watcher(LoopWatcher* watcher) { watcher_ = watcher; }
  Runtime& runtime() { return runtime_; }
  const Program& program() const { return program_; }
  const FramePtr& frame() const { return frame_; }
  const std::map<std::string, Value>& functions() const { return functions_; }
  const std::string& text() const { return root_; }
  /// Adds to the output size bytes that are not in text().
  void skip_output(std::size_t bytes);

 private:
  enum class Flow : std::uint8_t { normal, break_loop, continue_loop };

  /// Sets a member, and restores its old value at the end of the scope.
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

  /// Runs `action`. Rethrows a Failure as a TemplateError at `extent`.
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
  /// Runs a block in its own scope and appends its output to `text`.
  Flow collect(const Block& block, std::string& text);
  void write(std::string_view text);
  void check_output() const;
  void assign(const Target& target, const Value& value);
  Namespace& namespace_of(const Target& target);
  /// Throws unless targets with attributes are namespaces. As in Jinja, this runs before the value is evaluated.
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
  /// Compares two values. If one is a namespace attribute, records the condition on it that gives this result.
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
  std::string root_;  ///< output so far
  std::string* out_ = &root_;
  std::size_t skipped_ = 0;  ///< sum of skip_output()
  LoopWatcher* watcher_ = nullptr;
  Value filtered_;  ///< the text that the filters of a block apply to
  std::vector<TextSpan> assistant_;
  std::map<std::string, Value> functions_;  ///< standard functions that this template has used so far
};

/// A macro and the frame that it captures.
class MacroObject final : public Object {
 public:
  MacroObject(Interpreter& interpreter, const MacroDef& macro, FramePtr outer)
      : interpreter_(interpreter), macro_(macro), outer_(std::move(outer)) {}

  std::string_view type_name() const override { return "Macro"; }
  Value attribute(Runtime& runtime, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    return interpreter_.call_macro(macro_, outer_, arguments);
  }
  std::string repr(Runtime&, int depth) override;
  const MacroDef& definition() const { return macro_; }
  const FramePtr& outer() const { return outer_; }

 private:
  Interpreter& interpreter_;
  const MacroDef& macro_;
  FramePtr outer_;
};

template <class Action>
auto Interpreter::located(Extent extent, const Action& action) -> decltype(action()) {
  try {
    return action();
  } catch (const Failure& failure) {
    throw TemplateError(source_.location(extent), source_.quote(extent), failure);
  }
}

}  // namespace lathe::jinja
