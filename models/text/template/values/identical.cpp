#include "models/text/template/values/identical.h"

#include <algorithm>
#include <bit>

#include "models/text/template/values/list_view.h"

namespace lathe::jinja {

namespace {

bool identical_views(const ListView& a, const ListView& b) {
  return a.source == b.source && a.total == b.total && a.start == b.start && a.step == b.step && a.count == b.count &&
         a.replaced == ListView::none && b.replaced == ListView::none;
}

bool identical_lists(const Value& a, const Value& b) {
  if (a.view() || b.view()) return a.view() && b.view() && identical_views(*a.view(), *b.view());
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), identical);
}

bool identical_dicts(const Dict& a, const Dict& b) {
  return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                    [](const Dict::Item& x, const Dict::Item& y) {
                      return identical(x.first, y.first) && identical(x.second, y.second);
                    });
}

}  // namespace

bool identical(const Value& a, const Value& b) {
  if (a.kind() != b.kind() || a.is(Kind::object)) return false;
  switch (a.kind()) {
    case Kind::none:
    case Kind::missing: return true;
    case Kind::undefined:
      return a.undefined().message == b.undefined().message && a.undefined().unsafe == b.undefined().unsafe;
    case Kind::boolean:
    case Kind::integer: return a.integer() == b.integer();
    case Kind::real: return std::bit_cast<std::uint64_t>(a.real()) == std::bit_cast<std::uint64_t>(b.real());
    case Kind::string: return a.same_as(b) || (a.string() == b.string() && a.text().safe == b.text().safe);
    case Kind::list:
    case Kind::tuple: return a.same_as(b) || identical_lists(a, b);
    case Kind::dict: return a.same_as(b) || identical_dicts(a.dict(), b.dict());
    case Kind::object: break;
  }
  return false;
}

bool holds_object(const Value& value) {
  if (value.is(Kind::object)) return true;
  if (value.is_sequence())
    return !value.view() && std::any_of(value.items().begin(), value.items().end(), holds_object);
  return value.is(Kind::dict) && std::any_of(value.dict().items().begin(), value.dict().items().end(),
                                             [](const Dict::Item& item) { return holds_object(item.second); });
}

}  // namespace lathe::jinja
