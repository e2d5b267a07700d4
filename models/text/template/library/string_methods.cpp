#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/library/call_arguments.h"
#include "models/text/template/library/methods.h"
#include "models/text/template/library/strings.h"
#include "models/text/template/values/casing.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/compare_values.h"
#include "models/text/template/values/repr.h"
#include "models/text/template/values/search.h"
#include "models/text/template/values/sequences.h"

/// Methods of strings that return strings.
namespace lathe::jinja {

namespace {

template <std::string (*change)(std::string_view)>
Value change_case(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound none("the method", given, {});
  runtime.spend(2 * self.string().size());
  return change(self.string());
}

template <Sides sides>
Value strip_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("strip", given, {"chars?"});
  const auto chars = bound.is_set(0) ? std::optional<std::string_view>(bound.string(0)) : std::nullopt;
  runtime.spend(self.string().size() + chars.value_or("").size());
  return strip(self.string(), chars, sides);
}

Value strings(Runtime& runtime, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  for (const std::string_view part : parts) {
    runtime.spend(sizeof(Value) + sizeof(Text) + part.size());
    items.emplace_back(part);
  }
  return Value::list(std::move(items));
}

template <bool from_end>
Value split_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("split", given, {"sep?", "maxsplit?"});
  const std::int64_t most = bound.integer(1, -1);
  if (!bound.is_set(0))
    return strings(runtime, from_end ? split_back(self.string(), most) : split(self.string(), most));
  const std::string& separator = bound.string(0);
  if (separator.empty()) fail_operation("empty separator");
  runtime.spend((from_end ? 2 : 0) * self.string().size());
  runtime.budget().spend_searching(self.string().size(), separator.size());
  return strings(runtime,
                 from_end ? split_back(self.string(), separator, most) : split(self.string(), separator, most));
}

Value splitlines(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("splitlines", given, {"keepends?"});
  return strings(runtime, split_lines(self.string(), bound.flag(runtime, 0, false)));
}

template <bool from_end>
Value partition(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("partition", given, {"sep"});
  const std::string &text = self.string(), &separator = bound.string(0);
  if (separator.empty()) fail_operation("empty separator");
  runtime.spend((from_end ? 3 : 1) * text.size());
  runtime.budget().spend_searching(text.size(), separator.size());
  const std::size_t at = from_end ? find_last(text, separator) : find_first(text, separator);
  if (at == std::string::npos && from_end) return Value::tuple({"", "", text});
  if (at == std::string::npos) return Value::tuple({text, "", ""});
  return Value::tuple({text.substr(0, at), separator, text.substr(at + separator.size())});
}

Value replace_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("replace", given, {"old", "new", "count?"});
  return replace(runtime, self.string(), bound.string(0), bound.string(1), bound.integer(2, -1));
}

Value join_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("join", given, {"iterable"});
  Iterator* items = try_iterate(runtime, bound[0]);
  if (!items) fail_operation("can only join an iterable");
  std::string text;
  std::size_t count = 0;
  for (Value item = items->next(runtime); !item.is_missing(); item = items->next(runtime), ++count) {
    if (!item.is_string())
      fail_operation(fmt::format("sequence item {}: expected str instance, {} found", count, type_name(item)));
    runtime.spend(1 + item.string().size() + self.string().size());
    if (count) text += self.string();
    text += item.string();
  }
  return text;
}

Value remove_prefix(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("removeprefix", given, {"prefix"});
  runtime.spend(self.string().size());
  return self.string().substr(self.string().starts_with(bound.string(0)) ? bound.string(0).size() : 0);
}

Value remove_suffix(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("removesuffix", given, {"suffix"});
  runtime.spend(self.string().size());
  const std::size_t cut = self.string().ends_with(bound.string(0)) ? bound.string(0).size() : 0;
  return self.string().substr(0, self.string().size() - cut);
}

template <Align align>
Value pad_method(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("center", given, {"width", "fillchar?"});
  const std::string fill = bound.has(1) ? bound.string(1) : " ";
  if (count_code_points(fill) != 1) fail_operation("The fill character must be exactly one character long");
  return pad(runtime, self.string(), bound.integer(0, 0), align, fill);
}

Value fill_zeros(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound bound("zfill", given, {"width"});
  const std::string& text = self.string();
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  const std::int64_t width = std::max<std::int64_t>(bound.integer(0, 0), 1) - static_cast<std::int64_t>(sign);
  return text.substr(0, sign) + pad(runtime, text.substr(sign), width, Align::right, "0");
}

}  // namespace

std::span<const MethodEntry> string_methods() {
  static constexpr MethodEntry entries[] = {
      {"capitalize", change_case<capitalize>},
      {"center", pad_method<Align::center>},
      {"join", join_method},
      {"ljust", pad_method<Align::left>},
      {"lower", change_case<to_lower>},
      {"lstrip", strip_method<Sides::start>},
      {"partition", partition<false>},
      {"removeprefix", remove_prefix},
      {"removesuffix", remove_suffix},
      {"replace", replace_method},
      {"rjust", pad_method<Align::right>},
      {"rpartition", partition<true>},
      {"rsplit", split_method<true>},
      {"rstrip", strip_method<Sides::end>},
      {"split", split_method<false>},
      {"splitlines", splitlines},
      {"strip", strip_method<Sides::both>},
      {"title", change_case<to_title>},
      {"upper", change_case<to_upper>},
      {"zfill", fill_zeros},
  };
  return entries;
}

}  // namespace lathe::jinja
