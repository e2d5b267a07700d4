#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "models/text/template/library/call_arguments.h"
#include "models/text/template/library/methods.h"
#include "models/text/template/values/casing.h"
#include "models/text/template/values/char_class.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/search.h"

/// Search methods of strings.
namespace lathe::jinja {

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
