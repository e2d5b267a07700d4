#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "models/text/template/library/functions.h"
#include "models/text/template/library/library.h"
#include "models/text/template/library/strings.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value_operators.h"

/// Methods of strings that return strings.
/// Search methods of strings.
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

namespace {

/// Byte range of the code points from `start` to `stop`; negative positions count from the end. part_of() returns
/// nullopt if `start` is after `stop`.
struct Part {
  std::size_t begin = 0, end = 0;
};
std::optional<Part> part_of(const std::string& text, const Value& start, const Value& stop) {
  if (start.is_missing() && stop.is_missing()) return Part{0, text.size()};
  const std::int64_t size = count_code_points(text);
  const auto bound = [&](const Value& given, std::int64_t otherwise) {
    if (given.is_missing() || given.is_none()) return otherwise;
    if (!given.is_integer()) fail_operation("slice indices must be integers or None or have an __index__ method");
    return given.integer() < 0 ? std::max<std::int64_t>(0, given.integer() + size) : given.integer();
  };
  const std::int64_t first = bound(start, 0), last = std::min(bound(stop, size), size);
  if (first > last) return std::nullopt;
  return Part{byte_of_code_point(text, first), byte_of_code_point(text, last)};
}

struct Found {
  std::int64_t index = -1;  ///< in code points; -1 if not found
  std::int64_t count = 0;
};

enum class From { start, end };

Found search(Runtime& runtime, const Value& self, const Bound& bound, From from, bool counts = false) {
  const std::string &text = self.string(), &wanted = bound.string(0);
  runtime.budget().spend_searching(text.size(), wanted.size());
  if (from == From::end) runtime.spend(2 * text.size());  // find_last() copies the text and reverses it
  const auto part = part_of(text, bound[1], bound[2]);
  if (!part) return {};
  const std::string_view within = std::string_view(text).substr(part->begin, part->end - part->begin);
  const std::size_t at = from == From::end ? find_last(within, wanted) : find_first(within, wanted);
  if (at == std::string_view::npos) return {};
  Found found{.index = count_code_points(std::string_view(text).substr(0, part->begin + at)), .count = 0};
  if (!counts) return found;
  if (wanted.empty()) return {found.index, count_code_points(within) + 1};
  for (std::size_t next = find_first(within, wanted); next != std::string_view::npos; ++found.count)
    next = find_first(within, wanted, next + wanted.size());
  return found;
}

template <From from>
Value find(Runtime& runtime, const Value& self, const Arguments& given) {
  return search(runtime, self, Bound("find", given, {"sub", "start?", "end?"}), from).index;
}

template <From from>
Value index(Runtime& runtime, const Value& self, const Arguments& given) {
  const Found found = search(runtime, self, Bound("index", given, {"sub", "start?", "end?"}), from);
  if (found.index < 0) fail_operation("substring not found");
  return found.index;
}

Value count_text(Runtime& runtime, const Value& self, const Arguments& given) {
  return search(runtime, self, Bound("count", given, {"sub", "start?", "end?"}), From::start, true).count;
}

template <bool at_end>
Value touches(Runtime& runtime, const Value& self, const Arguments& given) {
  constexpr std::string_view name = at_end ? "endswith" : "startswith";
  const Bound bound(name, given, {"affix", "start?", "end?"});
  runtime.budget().spend_reading(self.string().size());
  const auto part = part_of(self.string(), bound[1], bound[2]);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string())
      fail_operation(fmt::format("tuple for {} must only contain str, not {}", name, type_name(affix)));
    if (!part) return false;
    runtime.budget().spend_reading(affix.string().size());
    const std::string_view within = std::string_view(self.string()).substr(part->begin, part->end - part->begin);
    return at_end ? within.ends_with(affix.string()) : within.starts_with(affix.string());
  };
  if (bound[0].is_string()) return matches(bound[0]);
  if (!bound[0].is(Kind::tuple))
    fail_operation(fmt::format("{} first arg must be str or a tuple of str, not {}", name, type_name(bound[0])));
  for (const Value& affix : bound[0].items())
    if (matches(affix)) return true;
  return false;
}

template <bool (*holds)(char32_t)>
Value all_points(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound none("the method", given, {});
  const std::string& text = self.string();
  runtime.spend(text.size());
  for (std::size_t at = 0; at < text.size(); at += code_point_size(text, at))
    if (!holds(code_point_at(text, at))) return false;
  return !text.empty();
}

template <bool (*holds)(std::string_view)>
Value cased(Runtime& runtime, const Value& self, const Arguments& given) {
  const Bound none("the method", given, {});
  runtime.spend(self.string().size());
  return holds(self.string());
}

bool is_ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

/// Returns true for empty text too, unlike the other predicates.
bool all_printable(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at += code_point_size(text, at))
    if (!is_printable(code_point_at(text, at))) return false;
  return true;
}

bool is_identifier(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at += code_point_size(text, at)) {
    const char32_t point = code_point_at(text, at);
    if (!is_word_character(point) || (at == 0 && point != '_' && !is_letter(point))) return false;
  }
  return !text.empty();
}

}  // namespace

std::span<const MethodEntry> string_searches() {
  static constexpr MethodEntry entries[] = {
      {"count", count_text},          {"endswith", touches<true>}, {"find", find<From::start>},
      {"index", index<From::start>},  {"rfind", find<From::end>},  {"rindex", index<From::end>},
      {"startswith", touches<false>},
  };
  return entries;
}

std::span<const MethodEntry> string_questions() {
  static constexpr MethodEntry entries[] = {
      {"isalnum", all_points<is_letter_or_number>},
      {"isalpha", all_points<is_letter>},
      {"isascii", cased<is_ascii>},
      {"isdecimal", all_points<is_decimal>},
      {"isdigit", all_points<is_digit>},
      {"isidentifier", cased<is_identifier>},
      {"islower", cased<is_lower>},
      {"isprintable", cased<all_printable>},
      {"isspace", all_points<is_space>},
      {"istitle", cased<is_title>},
      {"isupper", cased<is_upper>},
  };
  return entries;
}

}  // namespace lathe::jinja
