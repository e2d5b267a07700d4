#include <fmt/core.h>

#include "models/text/template/library/call_arguments.h"
#include "models/text/template/library/methods.h"
#include "models/text/template/values/compare_values.h"
#include "models/text/template/values/lookup.h"
#include "models/text/template/values/repr.h"
#include "models/text/template/values/sequences.h"

/// Non-mutating methods of lists, tuples and dicts.
namespace lathe::jinja {

namespace {

Value count_items(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("count", given, {"value"});
  std::int64_t found = 0;
  for (const Value& item : self.items()) found += item.same_as(bound[0]) || equal(item, bound[0], runtime.budget());
  return found;
}

Value index(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("index", given, {"value", "start?", "stop?"});
  const auto& items = self.items();
  const SliceSteps steps = slice_steps(bound[1], bound[2], Value(), static_cast<std::int64_t>(items.size()));
  for (std::int64_t i = steps.start; i < steps.start + steps.count; ++i) {
    const Value& item = items[static_cast<std::size_t>(i)];
    if (item.same_as(bound[0]) || equal(item, bound[0], runtime.budget())) return i;
  }
  if (self.is(Kind::tuple)) fail_operation("tuple.index(x): x not in tuple");
  fail_operation(fmt::format("{} is not in list", repr(runtime, bound[0])));
}

Value copy(Runtime&, const Value& self, const Arguments& given) {
  const Bound none("copy", given, {});
  return self;
}

Value get(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("get", given, {"key", "default?"});
  const Value* found = self.dict().find(bound[0], runtime.budget());
  return found ? *found : bound.get(1, Value());
}

template <DictView::What what>
Value view(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound none("the method", given, {});
  return runtime.make<DictView>(self, what);
}

}  // namespace

std::span<const MethodEntry> sequence_methods() {
  static constexpr MethodEntry entries[] = {{"copy", copy}, {"count", count_items}, {"index", index}};
  return entries;
}

std::span<const MethodEntry> dict_methods() {
  static constexpr MethodEntry entries[] = {{"copy", copy},
                                            {"get", get},
                                            {"items", view<DictView::What::items>},
                                            {"keys", view<DictView::What::keys>},
                                            {"values", view<DictView::What::values>}};
  return entries;
}

}  // namespace lathe::jinja
