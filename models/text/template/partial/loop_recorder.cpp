#include "models/text/template/partial/loop_recorder.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "models/text/template/interpreter.h"
#include "models/text/template/library/functions.h"
#include "models/text/template/values/value_operators.h"

namespace lathe::jinja {

namespace {

Variable read_variable(const Interpreter& interpreter, const std::string& name, const Value& value) {
  Variable variable{.value = value};
  if (!value.is(Kind::object)) return variable;
  const auto function = interpreter.functions().find(name);
  variable.standard = function != interpreter.functions().end() && function->second.same_as(value);
  variable.space = dynamic_cast<Namespace*>(value.object());
  if (variable.space)
    for (const auto& [key, attribute] : variable.space->attributes())
      variable.attributes.emplace(key.string(), attribute);
  const auto* macro = dynamic_cast<const MacroObject*>(value.object());
  if (macro && macro->outer() == interpreter.frame()) variable.macro = &macro->definition();
  return variable;
}

}  // namespace

Variables read_variables(const Interpreter& interpreter) {
  Variables all;
  std::set<const Namespace*> spaces;
  for (const Load& load : interpreter.program().main.scope) {
    const Value& value = interpreter.frame()->slots[load.index];
    const auto [at, added] = all.named.emplace(load.name, read_variable(interpreter, load.name, value));
    const Namespace* space = at->second.space;
    if (!added || (space && !spaces.insert(space).second)) all.shares_namespace = true;
  }
  return all;
}

bool same_variable(const Variable& a, const Variable& b) {
  if (a.space || b.space) return a.space && b.space;
  if (a.macro || b.macro) return a.macro == b.macro;
  if (a.standard || b.standard) return a.standard && b.standard;
  return identical(a.value, b.value);
}

namespace {

/// Returns whether two views start at the same item and reach their ends. The recorder records how a loop uses them.
bool same_start(const ListView* a, const ListView* b) {
  return a && b && a->source == b->source && a->start == b->start && a->reaches_end() && b->reaches_end();
}

std::size_t iteration_of(const std::map<std::string, std::size_t>& reads, const std::string& name) {
  const auto at = reads.find(name);
  return at == reads.end() ? never : at->second;
}

/// Returns the first iteration that may read an attribute whose value before the loop differs. Clears `unchanged` if
/// there is such an attribute.
std::size_t first_attribute_change(const LoopRecord& record, const std::string& name, const Variable& then,
                                   const Variable& now, bool& unchanged) {
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (!std::equal(then.attributes.begin(), then.attributes.end(), now.attributes.begin(), now.attributes.end(),
                  same_name)) {
    unchanged = false;
    return 0;
  }
  std::size_t first = never;
  for (const auto& [attribute, value] : then.attributes) {
    const auto given = now.attributes.find(attribute);
    if (identical(value, given->second)) continue;
    unchanged = false;
    const auto at = record.attributes.find({name, attribute});
    if (at != record.attributes.end()) first = std::min(first, at->second.first_change(given->second));
  }
  return first;
}

}  // namespace

const Value* AttributeRecord::before(std::size_t iteration) const {
  const auto at =
      std::partition_point(writes.begin(), writes.end(), [&](const auto& write) { return write.first < iteration; });
  return at == writes.begin() ? nullptr : &std::prev(at)->second;
}

std::size_t AttributeRecord::first_change(const Value& value) const {
  const bool number = value.is(Kind::integer);
  const auto holds = [&](const Bounds& bound) {
    return number && bound.least <= value.integer() && value.integer() <= bound.most;
  };
  const auto at = std::partition_point(bounds.begin(), bounds.end(), holds);
  return std::min(first_read, at == bounds.end() ? never : at->iteration);
}

std::size_t LoopRecord::first_list_change(const ListPart& part) const {
  const bool shorter = part.count != list.total, replaces = part.replaced != ListView::none;
  std::size_t first = shorter || replaces ? first_list_read : never;
  if (shorter) {
    const auto at =
        std::partition_point(needed.begin(), needed.end(), [&](std::size_t items) { return items <= part.count; });
    first = std::min(first, static_cast<std::size_t>(at - needed.begin()));
  }
  if (replaces) {
    const auto start = static_cast<std::size_t>(list.start);
    first = std::min({first, first_seen[part.replaced], part.replaced >= start ? part.replaced - start : never});
  }
  return first;
}

std::size_t LoopRecord::first_variable_change(const Variables& now, bool& unchanged) const {
  std::size_t first = never;
  for (const auto& [name, then] : entry.named) {
    const Variable& given = now.named.at(name);
    if (then.space && given.space) {
      first = std::min(first, first_attribute_change(*this, name, then, given, unchanged));
    } else if (then.space || given.space) {
      unchanged = false;
      return 0;
    } else if (!same_variable(then, given) && !same_start(then.value.view(), given.value.view())) {
      unchanged = false;
      first = std::min({first, iteration_of(first_read, name), iteration_of(first_item_read, name)});
    }
  }
  return first;
}

std::size_t LoopRecord::common_iterations(const Variables& now, const ListView& view, const ListPart& part,
                                          bool& unchanged) const {
  unchanged = false;
  if (!same_start(&view, &list) || now.shares_namespace || entry.shares_namespace) return 0;
  unchanged = part.count == list.total && part.flag.empty();
  const std::size_t flag = part.flag.empty() ? never : iteration_of(first_read, part.flag);
  return std::min(
      {view.count, iterations(), given_up, flag, first_list_change(part), first_variable_change(now, unchanged)});
}

std::size_t LoopRecord::last_use(std::size_t item) const {
  const auto start = static_cast<std::size_t>(list.start);
  return std::max({last_list_read, last_seen[item], item >= start ? item - start : 0});
}

void LoopRecord::write_attributes(const Variables& now, std::size_t from, std::size_t iteration) const {
  for (const auto& [key, attribute] : attributes) {
    const Value* value = attribute.before(iteration);
    if (value && value != attribute.before(from)) now.named.at(key.first).space->set(key.second, *value);
  }
}

bool LoopRecord::has_attributes(const Variables& now, std::size_t iteration) const {
  for (const auto& [name, then] : entry.named) {
    if (!then.space) continue;
    const Namespace& space = *now.named.at(name).space;
    if (space.attributes().size() != then.attributes.size()) return false;
    for (const auto& [attribute, before] : then.attributes) {
      const auto at = attributes.find({name, attribute});
      const Value* written = at == attributes.end() ? nullptr : at->second.before(iteration);
      const Value* value = space.find(attribute);
      if (!value || !identical(written ? *written : before, *value)) return false;
    }
  }
  return true;
}

bool Interpreter::is_namespace_attribute(const Expr& expr) {
  const auto* attribute = std::get_if<Attribute>(&expr.node);
  const auto* name = attribute ? std::get_if<Name>(&attribute->object->node) : nullptr;
  if (!name || !variable(name->slot).is(Kind::object)) return false;
  return dynamic_cast<const Namespace*>(variable(name->slot).object()) != nullptr;
}

bool Interpreter::compare_recorded(const Comparison& comparison) {
  const auto& [comparator, second] = comparison.rest.front();
  LoopRecorder& recorder = *runtime_.recorder();
  const bool on_left = is_namespace_attribute(*comparison.first),
             on_right = !on_left && is_namespace_attribute(*second);
  AttributeRecord* attribute = nullptr;
  if (on_left) recorder.expect_attribute();
  const Value left = eval(comparison.first);
  if (on_left) attribute = recorder.expected_attribute();
  if (on_right) recorder.expect_attribute();
  const Value right = eval(second);
  if (on_right) attribute = recorder.expected_attribute();
  const bool holds = compare(comparator, left, right);
  if (on_right)
    recorder.compare_attribute(attribute, right, {mirrored(comparator), left, holds});
  else
    recorder.compare_attribute(attribute, left, {comparator, right, holds});
  return holds;
}

namespace {

constexpr std::int64_t most_int = std::numeric_limits<std::int64_t>::max(),
                       least_int = std::numeric_limits<std::int64_t>::min();

/// Returns the range of numbers whose comparison with `other` has this result; nullopt if they do not form a range.
std::optional<std::pair<std::int64_t, std::int64_t>> range_of(Comparator comparator, std::int64_t other,
                                                              bool result) {
  if (other == least_int || other == most_int) return std::nullopt;
  const std::pair at_most{least_int, other}, below{least_int, other - 1}, at_least{other, most_int},
      above{other + 1, most_int};
  switch (comparator) {
    case Comparator::less: return result ? below : at_least;
    case Comparator::less_equal: return result ? at_most : above;
    case Comparator::greater: return result ? above : at_most;
    case Comparator::greater_equal: return result ? at_least : below;
    case Comparator::equal:
    case Comparator::not_equal:
      if (result == (comparator == Comparator::equal)) return std::pair{other, other};
      return std::nullopt;
    case Comparator::in:
    case Comparator::not_in: break;
  }
  return std::nullopt;
}

}  // namespace

Comparator mirrored(Comparator comparator) {
  switch (comparator) {
    case Comparator::less: return Comparator::greater;
    case Comparator::less_equal: return Comparator::greater_equal;
    case Comparator::greater: return Comparator::less;
    case Comparator::greater_equal: return Comparator::less_equal;
    case Comparator::equal:
    case Comparator::not_equal:
    case Comparator::in:  // compare_attribute() ignores these
    case Comparator::not_in: break;
  }
  return comparator;
}

LoopRecorder::LoopRecorder(LoopRecord& record, const Loop& loop) : record_(record), loop_(loop) {
  for (const auto& [name, variable] : record.entry.named)
    if (variable.space) variables_.emplace(variable.space, name);
}

void LoopRecorder::start_iteration(std::size_t text, std::uint64_t work) {
  ++iteration_;
  record_.text_at.push_back(text);
  record_.work_at.push_back(work);
  record_.needed.push_back(record_.needed.empty() ? 0 : record_.needed.back());
}

void LoopRecorder::end(std::size_t text, std::uint64_t work, bool breaks) {
  if (breaks) give_up();
  record_.text_at.push_back(text);
  record_.work_at.push_back(work);
}

void LoopRecorder::see(std::size_t item) {
  record_.first_seen[item] = std::min(record_.first_seen[item], iteration_);
  record_.last_seen[item] = iteration_;
}

void LoopRecorder::read_variable(const std::string& name, const Value& value) {
  if (std::exchange(expects_item_, false)) return;
  record_.first_read.emplace(name, iteration_);
  if (!value.view()) return;
  record_.first_list_read = std::min(record_.first_list_read, iteration_);
  record_.last_list_read = iteration_;
}

void LoopRecorder::read_item(const std::string& name, const Value& list, const Value& index) {
  const ListView* view = list.view();
  const bool found = view && view->reaches_end() && view->source == record_.list.source && index.is(Kind::integer) &&
                     index.integer() >= 0 && static_cast<std::size_t>(index.integer()) < view->count;
  if (!found) return read_variable(name, list);
  const auto item = static_cast<std::size_t>(view->start + index.integer());
  record_.first_item_read.emplace(name, iteration_);
  need(item + 1);
  see(item);
}

AttributeRecord* LoopRecorder::unwritten(const Namespace& space, std::string_view name) {
  const auto variable = variables_.find(&space);
  if (variable == variables_.end()) return nullptr;
  AttributeRecord& record = record_.attributes[{variable->second, std::string(name)}];
  return record.writes.empty() ? &record : nullptr;
}

void LoopRecorder::read_attribute(const Namespace& space, std::string_view name) {
  AttributeRecord* record = unwritten(space, name);
  if (std::exchange(expects_attribute_, false))
    expected_ = record;
  else if (record)
    record->first_read = std::min(record->first_read, iteration_);
}

void LoopRecorder::expect_attribute() {
  expects_attribute_ = true;
  expected_ = nullptr;
}

AttributeRecord* LoopRecorder::expected_attribute() {
  expects_attribute_ = false;
  return std::exchange(expected_, nullptr);
}

void LoopRecorder::compare_attribute(AttributeRecord* record, const Value& value,
                                     const AttributeComparison& comparison) {
  if (!record) return;
  const bool numbers = value.is(Kind::integer) && comparison.other.is(Kind::integer);
  const auto range =
      numbers ? range_of(comparison.comparator, comparison.other.integer(), comparison.result) : std::nullopt;
  if (!range) {
    record->first_read = std::min(record->first_read, iteration_);
    return;
  }
  auto [least, most] = *range;
  if (!record->bounds.empty()) {
    least = std::max(least, record->bounds.back().least);
    most = std::min(most, record->bounds.back().most);
  }
  record->bounds.push_back({iteration_, least, most});
}

void LoopRecorder::write_attribute(const Namespace& space, const std::string& name, const Value& value) {
  const auto variable = variables_.find(&space);
  // A replay cannot restore the order of new attributes or use objects of another render.
  if (holds_object(value) || (variable != variables_.end() && !space.find(name))) give_up();
  if (variable == variables_.end()) return;
  record_.attributes[{variable->second, name}].writes.emplace_back(iteration_, value);
}

void LoopRecorder::read_next(const Loop& loop) {
  if (&loop != &loop_) return;
  const std::size_t next = static_cast<std::size_t>(record_.list.start) + iteration_ + 1;
  need(next + 1);
  if (next < record_.list.total) see(next);
}

void LoopRecorder::read_previous(const Loop& loop) {
  if (&loop == &loop_ && iteration_ > 0) see(static_cast<std::size_t>(record_.list.start) + iteration_ - 1);
}

void LoopRecorder::read_length(const Loop& loop) {
  if (&loop == &loop_) need(never);
}

void LoopRecorder::read_state(const Loop& loop) {
  if (&loop == &loop_) give_up();
}

namespace {

void add_top_loops(const Block& block, std::set<const For*>& loops) {
  for (const Statement& statement : block) {
    const auto* loop = std::get_if<For>(&statement.node);
    if (loop && !loop->condition && loop->otherwise.empty()) loops.insert(loop);
    const auto* branches = std::get_if<If>(&statement.node);
    if (!branches) continue;
    for (const auto& [test, body] : branches->branches) add_top_loops(body, loops);
    add_top_loops(branches->otherwise, loops);
  }
}

}  // namespace

std::set<const For*> top_loops(const Program& program) {
  std::set<const For*> loops;
  add_top_loops(program.main.body, loops);
  return loops;
}

Recording::Recording(Interpreter& interpreter, std::map<const For*, LoopRecord>& records)
    : interpreter_(interpreter), loops_(top_loops(interpreter.program())), records_(records) {}

void Recording::enter(const For& node, Loop& loop, const Value& iterable) {
  const ListView* view = iterable.view();
  if (!view || !view->reaches_end()) return;
  LoopRecord& record = records_.try_emplace(&node, read_variables(interpreter_), *view).first->second;
  recorder_.emplace(record, loop);
  interpreter_.runtime().set_recorder(&*recorder_);
}

void Recording::before_iteration() {
  if (recorder_) recorder_->start_iteration(interpreter_.text().size(), interpreter_.runtime().budget().spent());
}

void Recording::end(bool breaks) {
  if (!recorder_) return;
  recorder_->end(interpreter_.text().size(), interpreter_.runtime().budget().spent(), breaks);
  interpreter_.runtime().set_recorder(nullptr);
  recorder_.reset();
}

}  // namespace lathe::jinja
