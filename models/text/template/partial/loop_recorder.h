#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/template/interpreter.h"
#include "models/text/template/loop.h"
#include "models/text/template/values/value.h"

namespace lathe::jinja {

class Loop;
class Namespace;

/// A variable of a template, outside of its loops and macros.
struct Variable {
  Value value;
  Namespace* space = nullptr;                    ///< set if the value is a namespace
  std::map<std::string, Value> attributes = {};  ///< of the namespace, at the time of read_variables()
  const MacroDef* macro = nullptr;               ///< set if the value is a macro of the template
  bool standard = false;                         ///< the value is the standard function of that name
};

struct Variables {
  std::map<std::string, Variable> named;
  bool shares_namespace = false;  ///< two variables have the same namespace
};

/// Returns the variables of the template. No loop or macro may run.
Variables read_variables(const Interpreter& interpreter);

/// Returns whether no template can observe a difference, except in namespace attributes.
bool same_variable(const Variable& a, const Variable& b);

/// No iteration.
constexpr std::size_t never = static_cast<std::size_t>(-1);

/// Reads and writes of an attribute of a namespace by the iterations of a loop.
struct AttributeRecord {
  /// From `iteration` on, the value that the attribute has before the loop must be in [least, most].
  struct Bounds {
    std::size_t iteration;
    std::int64_t least, most;
  };
  // Of the value before the loop:
  std::size_t first_read = never;  ///< iteration that may depend on it in other ways than by `bounds`
  std::vector<Bounds> bounds = {};
  std::vector<std::pair<std::size_t, Value>> writes = {};  ///< iteration and value

  /// Returns the last value written before an iteration; null for none.
  const Value* before(std::size_t iteration) const;
  /// Returns the first iteration that may behave differently if `value` is the attribute's value before the loop.
  std::size_t first_change(const Value& value) const;
};

/// How the inputs of a render differ from those of the recorded render.
struct ListPart {
  std::size_t count;                      ///< number of leading items
  std::size_t replaced = ListView::none;  ///< index of the replaced item
  std::string flag = {};                  ///< name of a variable with a different value; empty for none
};

/// Results of the iterations of a loop over a list, and the inputs that each of them depends on.
struct LoopRecord {
  using Attribute = std::pair<std::string, std::string>;  ///< variable, attribute

  LoopRecord(Variables variables, const ListView& view)
      : entry(std::move(variables)), list(view), first_seen(view.total, never), last_seen(view.total, 0) {}

  Variables entry;
  ListView list;
  // At the start of each iteration and at the end of the last:
  std::vector<std::size_t> text_at = {};
  std::vector<std::uint64_t> work_at = {};
  /// For each iteration, the smallest length of a shorter list with which it and earlier iterations do the same.
  std::vector<std::size_t> needed = {};
  // Iterations by variable. `first_read` does not include reads of a single list item.
  std::map<std::string, std::size_t> first_read = {}, first_item_read = {};
  std::map<Attribute, AttributeRecord> attributes = {};
  std::vector<std::size_t> first_seen, last_seen;  ///< iteration in which an item of the source was read by its index
  std::size_t first_list_read = never, last_list_read = 0;  ///< iteration in which any item may have been read
  std::size_t given_up = never;                             ///< iteration that did something that cannot be recorded

  std::size_t iterations() const { return text_at.size() - 1; }
  /// Returns the number of leading iterations that do the same in a render with a part of the list. Sets `unchanged`
  /// to whether all variables except the list are as recorded.
  std::size_t common_iterations(const Variables& now, const ListView& view, const ListPart& part,
                                bool& unchanged) const;
  /// Returns the last iteration that may depend on an item of the source.
  std::size_t last_use(std::size_t item) const;
  /// Sets the attributes of the namespaces of `now` that the iterations from `from` up to `iteration` write.
  void write_attributes(const Variables& now, std::size_t from, std::size_t iteration) const;
  /// Returns whether the namespaces have the recorded attributes at the start of an iteration.
  bool has_attributes(const Variables& now, std::size_t iteration) const;

 private:
  // First iteration that may behave differently:
  std::size_t first_list_change(const ListPart& part) const;
  std::size_t first_variable_change(const Variables& now, bool& unchanged) const;
};

/// Called by the interpreter while it runs loops that the watcher chose.
class LoopWatcher {
 public:
  LoopWatcher() = default;
  LoopWatcher(const LoopWatcher&) = delete;
  LoopWatcher& operator=(const LoopWatcher&) = delete;
  virtual ~LoopWatcher() = default;

  virtual bool watches(const For& loop) const = 0;
  /// Before the first iteration. May skip items, as after_iteration() may.
  virtual void enter(const For& node, Loop& loop, const Value& iterable) = 0;
  virtual void before_iteration() = 0;
  virtual void after_iteration() = 0;
  virtual void breaks() = 0;
  virtual void leave() = 0;
};

/// The comparison `attribute comparator other` and its result.
struct AttributeComparison {
  Comparator comparator;
  const Value& other;
  bool result;
};
/// Returns the comparator for swapped operands.
Comparator mirrored(Comparator comparator);

/// Records reads and writes of the iterations of a loop. The interpreter and its objects call it.
class LoopRecorder {
 public:
  /// `record` outlives the recorder.
  LoopRecorder(LoopRecord& record, const Loop& loop);

  void start_iteration(std::size_t text, std::uint64_t work);
  /// Call it after the last iteration or in the iteration that breaks.
  void end(std::size_t text, std::uint64_t work, bool breaks);

  void read_variable(const std::string& name, const Value& value);
  /// For a subscript of variable `name`, whose value is `list`. Call expect_item() before the variable is evaluated.
  void expect_item() { expects_item_ = true; }
  void read_item(const std::string& name, const Value& list, const Value& index);

  void read_attribute(const Namespace& space, std::string_view name);
  // For an attribute that is an operand of a comparison. Call expect_attribute() before the operand is evaluated, and
  // expected_attribute() after that.
  void expect_attribute();
  /// Returns the record for compare_attribute(); null if the comparison needs none.
  AttributeRecord* expected_attribute();
  void compare_attribute(AttributeRecord* attribute, const Value& value, const AttributeComparison& comparison);
  void write_attribute(const Namespace& space, const std::string& name, const Value& value);

  // For the variable `loop`. Calls for other loops do nothing.
  void read_next(const Loop& loop);
  void read_previous(const Loop& loop);
  void read_length(const Loop& loop);
  void read_state(const Loop& loop);

  /// Marks the iteration as one that must always run, because it depends on state that is not recorded.
  void give_up() { record_.given_up = std::min(record_.given_up, iteration_); }

 private:
  void need(std::size_t items) { record_.needed.back() = std::max(record_.needed.back(), items); }
  void see(std::size_t item);
  /// Returns the record of an attribute; null if the loop has written it, or if no variable has the namespace.
  AttributeRecord* unwritten(const Namespace& space, std::string_view name);

  LoopRecord& record_;
  const Loop& loop_;
  std::map<const Namespace*, std::string> variables_;
  std::size_t iteration_ = never;
  bool expects_item_ = false, expects_attribute_ = false;
  AttributeRecord* expected_ = nullptr;
};

/// Returns the loops that run at most once, outside of any scope with its own variables, and that have neither a
/// condition nor {% else %}.
std::set<const For*> top_loops(const Program& program);

/// Records the top loops over a list that is a view.
class Recording final : public LoopWatcher {
 public:
  Recording(Interpreter& interpreter, std::map<const For*, LoopRecord>& records);

  bool watches(const For& loop) const override { return loops_.contains(&loop); }
  void enter(const For& node, Loop& loop, const Value& iterable) override;
  void before_iteration() override;
  void after_iteration() override {}
  void breaks() override { end(true); }
  void leave() override { end(false); }

 private:
  void end(bool breaks);

  Interpreter& interpreter_;
  std::set<const For*> loops_;
  std::map<const For*, LoopRecord>& records_;
  std::optional<LoopRecorder> recorder_;
};

}  // namespace lathe::jinja
