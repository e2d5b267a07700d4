#include "models/text/template/values/value.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ir/support/error.h"
#include "models/text/template/values/object.h"
#include "models/text/template/values/value_operators.h"

namespace lathe::jinja {

namespace {

/// Returns `within` + 1. Throws Failure [template_limit] above the maximum depth.
int check_depth(int within) {
  if (within >= Value::max_depth) fail_limit(fmt::format("lists and dicts nest more than {} deep", Value::max_depth));
  return within + 1;
}

std::shared_ptr<const Sequence> make_sequence(std::vector<Value> items) {
  int within = 0;
  for (const Value& item : items) within = std::max(within, item.depth());
  return std::make_shared<const Sequence>(Sequence{std::move(items), check_depth(within)});
}

}  // namespace

Value::Value(std::string value, bool safe)
    : Value(Kind::string, std::make_shared<const Text>(Text{std::move(value), safe})) {}

Value Value::list(std::vector<Value> items) { return {Kind::list, make_sequence(std::move(items))}; }

Value Value::list(ListView view, int depth) {
  return {Kind::list,
          std::make_shared<const Sequence>(Sequence{{}, depth, std::make_shared<const ListView>(std::move(view))})};
}

Value Value::tuple(std::vector<Value> items) { return {Kind::tuple, make_sequence(std::move(items))}; }

Value Value::dict(std::vector<std::pair<Value, Value>> items) {
  Budget unlimited(std::numeric_limits<std::uint64_t>::max());
  DictBuilder builder;
  for (auto& [key, value] : items) builder.set(std::move(key), std::move(value), unlimited);
  return std::move(builder).finish();
}

Value Value::of(Dict dict) {
  check_depth(dict.depth() - 1);
  return {Kind::dict, std::make_shared<const Dict>(std::move(dict))};
}

Value Value::undefined(std::string message, bool unsafe) {
  return {Kind::undefined, std::make_shared<const Undefined>(Undefined{std::move(message), unsafe})};
}

Value Value::missing() { return {Kind::missing, nullptr}; }

void Value::require(Kind kind) const { LATHE_ASSERT(kind_ == kind); }

bool Value::boolean() const {
  require(Kind::boolean);
  return boolean_;
}

std::int64_t Value::integer() const {
  if (is(Kind::boolean)) return std::int64_t{boolean_};
  require(Kind::integer);
  return integer_;
}

double Value::real() const { return is(Kind::real) ? real_ : static_cast<double>(integer()); }

Object* Value::object() const {
  require(Kind::object);
  return object_;
}

const Text& Value::text() const {
  require(Kind::string);
  return *static_cast<const Text*>(held_.get());
}

const Dict& Value::dict() const {
  require(Kind::dict);
  return *static_cast<const Dict*>(held_.get());
}

const Undefined& Value::undefined() const {
  require(Kind::undefined);
  return *static_cast<const Undefined*>(held_.get());
}

const Sequence& Value::sequence() const {
  LATHE_ASSERT(is_sequence());
  return *static_cast<const Sequence*>(held_.get());
}

const std::vector<Value>& Value::items() const {
  const Sequence& list = sequence();
  if (list.view && list.items.empty()) list.items = list.view->items();
  return list.items;
}

std::size_t Value::size() const { return view() ? view()->count : items().size(); }

const Value& Value::item(std::size_t at) const { return view() ? view()->item(at) : items()[at]; }

const ListView* Value::view() const { return is(Kind::list) ? sequence().view.get() : nullptr; }

bool Value::same_as(const Value& other) const {
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::none:
    case Kind::missing: return true;
    case Kind::boolean: return boolean_ == other.boolean_;
    case Kind::integer: return integer_ == other.integer_;
    case Kind::real: return real_ == other.real_;
    case Kind::object: return object_ == other.object_;
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict: break;
  }
  return held_ == other.held_;
}

int Value::depth() const {
  if (is_sequence()) return sequence().depth;
  return is(Kind::dict) ? dict().depth() : 0;
}

template <class Same>
std::size_t Dict::position(std::uint64_t hash, const Same& same) const {
  if (slots_.empty()) return none;
  for (std::size_t at = hash;; ++at) {
    const Slot& slot = slots_[at & (slots_.size() - 1)];
    if (slot.position == none || (slot.hash == hash && same(items_[slot.position].first))) return slot.position;
  }
}

const Value* Dict::find(const Value& key, Budget& budget) const {
  const auto at = position(hash_of(key, budget), [&](const Value& there) { return equal(there, key, budget); });
  return at == none ? nullptr : &items_[at].second;
}

const Value* Dict::find(std::string_view key) const {
  const auto at =
      position(hash_of(key), [&](const Value& there) { return there.is_string() && there.string() == key; });
  return at == none ? nullptr : &items_[at].second;
}

DictBuilder::DictBuilder(const Dict& base) : Dict(base) { --depth_; }

void DictBuilder::set(Value key, Value value, Budget& budget) {
  const std::uint64_t hash = hash_of(key, budget);
  const auto at = position(hash, [&](const Value& there) { return equal(there, key, budget); });
  put(at, hash, std::move(key), std::move(value));
}

void DictBuilder::set(std::string_view key, Value value) {
  const std::uint64_t hash = hash_of(key);
  const auto at = position(hash, [&](const Value& there) { return there.is_string() && there.string() == key; });
  put(at, hash, key, std::move(value));
}

void DictBuilder::put(std::size_t position, std::uint64_t hash, Value key, Value value) {
  depth_ = std::max({depth_, key.depth(), value.depth()});
  if (position != none) {
    items_[position].second = std::move(value);
    return;
  }
  items_.emplace_back(std::move(key), std::move(value));
  if (2 * items_.size() <= slots_.size()) return enter(hash, items_.size() - 1);
  const std::vector<Slot> old(std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(8, 2 * slots_.size()))));
  for (const Slot& slot : old)
    if (slot.position != none) enter(slot.hash, slot.position);
  enter(hash, items_.size() - 1);
}

void DictBuilder::enter(std::uint64_t hash, std::size_t position) {
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at].position != none) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = {hash, position};
}

Value DictBuilder::finish() && {
  ++depth_;
  return Value::of(static_cast<Dict&&>(*this));
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::none: return "NoneType";
    case Kind::missing: return "missing";
    case Kind::undefined: return "Undefined";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return value.text().safe ? "Markup" : "str";
    case Kind::list: return "list";
    case Kind::tuple: return "tuple";
    case Kind::dict: return "dict";
    case Kind::object: return value.object()->type_name();
  }
  return {};
}

std::string described(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is_string() && value.text().safe) return "markupsafe.Markup object";
  return fmt::format("{} object", type_name(value));
}

void require_defined(const Value& value) {
  if (!value.is_undefined()) return;
  const Undefined& what = value.undefined();
  what.unsafe ? fail_unsafe(what.message) : fail_undefined(what.message);
}

const Value& ListView::item(std::size_t at) const {
  const auto index = static_cast<std::size_t>(start + static_cast<std::int64_t>(at) * step);
  return index == replaced ? replacement : (*source)[index];
}

std::vector<Value> ListView::items() const {
  std::vector<Value> all;
  all.reserve(count);
  for (std::size_t at = 0; at < count; ++at) all.push_back(item(at));
  return all;
}

ListView ListView::slice(std::int64_t first, std::int64_t stride, std::int64_t size) const {
  ListView part = *this;
  part.start = start + first * step;
  part.step = size > 1 ? step * stride : 1;
  part.count = static_cast<std::size_t>(size);
  return part;
}

bool ListView::reaches_end() const { return step == 1 && static_cast<std::size_t>(start) + count == total; }

}  // namespace lathe::jinja
