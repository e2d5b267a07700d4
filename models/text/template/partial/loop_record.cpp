#include "models/text/template/partial/loop_record.h"

#include <algorithm>

#include "models/text/template/library/namespace.h"
#include "models/text/template/values/identical.h"

namespace lathe::jinja {

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

}  // namespace lathe::jinja
