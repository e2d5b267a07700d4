#include "models/text/template/partial/loop_recorder.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "models/text/template/library/namespace.h"
#include "models/text/template/values/identical.h"

namespace lathe::jinja {

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

}  // namespace lathe::jinja
