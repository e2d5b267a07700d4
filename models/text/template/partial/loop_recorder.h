#pragma once

#include <map>
#include <string>
#include <string_view>

#include "models/text/template/partial/loop_record.h"

namespace lathe::jinja {

class Loop;

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

}  // namespace lathe::jinja
