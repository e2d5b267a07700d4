#include <fmt/core.h>

#include "models/text/template/library/call_arguments.h"
#include "models/text/template/library/filters.h"
#include "models/text/template/library/strings.h"
#include "models/text/template/values/casing.h"
#include "models/text/template/values/char_class.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/compare_values.h"
#include "models/text/template/values/json.h"
#include "models/text/template/values/repr.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/value_arithmetic.h"

/// Filters on text. They convert other values to text first.
namespace lathe::jinja {

namespace {

template <std::string (*change)(std::string_view)>
Value filter_case(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("the filter", given, {});
  const std::string text = to_text(runtime, subject);
  runtime.spend(2 * text.size());
  return {change(text), subject.is_string() && subject.text().safe};
}

/// Unlike str.title, a word starts only after white space, - ( { [ or <.
std::string title_words(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto separates = [&](std::size_t i) {
      return is_space(code_point_at(text, i)) || std::string_view("-({[<").find(text[i]) != std::string_view::npos;
    };
    std::size_t end = at;
    while (end < text.size() && separates(end) == separates(at)) end += code_point_size(text, end);
    const std::string_view word = text.substr(at, end - at);
    const std::size_t first = code_point_size(word, 0);
    out += to_upper(word.substr(0, first)) + to_lower(word.substr(first));
    at = end;
  }
  return out;
}

Value trim(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("trim", given, {"chars?"});
  const std::string text = to_text(runtime, subject);
  const auto chars = bound.is_set(0) ? std::optional<std::string_view>(bound.string(0)) : std::nullopt;
  runtime.spend(chars.value_or("").size());
  return Value(strip(text, chars, Sides::both));
}

Value replace_text(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("replace", given, {"old", "new", "count?"});
  const std::string text = to_text(runtime, subject), from = to_text(runtime, bound[0]),
                    to = to_text(runtime, bound[1]);
  return replace(runtime, text, from, to, bound.is_set(2) ? bound.integer(2, -1) : -1);
}

Value indent_text(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("indent", given, {"width?", "first?", "blank?"});
  require_defined(subject);
  if (subject.is(Kind::list)) fail_operation("'list' object has no attribute 'splitlines'");
  if (subject.is(Kind::tuple)) fail_operation("can only concatenate tuple (not \"str\") to tuple");
  if (!subject.is_string())
    fail_operation(fmt::format("unsupported operand type(s) for +=: '{}' and 'str'", type_name(subject)));
  const std::string by =
      bound.has(0) && bound[0].is_string() ? bound[0].string() : repeat(runtime, " ", bound.integer(0, 4));
  runtime.spend(subject.string().size() * (1 + by.size()));
  return indent(subject.string(), by, bound.flag(runtime, 1, false), bound.flag(runtime, 2, false));
}

Value center(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("center", given, {"width?"});
  return pad(runtime, to_text(runtime, subject), bound.integer(0, 80), Align::center);
}

/// Returns a value that is short enough unchanged, even if it is not a string.
Value truncate(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("truncate", given, {"length?", "killwords?", "end?", "leeway?"});
  const std::string end = bound.has(2) ? bound.string(2) : "...";
  const std::int64_t length = bound.integer(0, 255), leeway = bound.is_set(3) ? bound.integer(3, 5) : 5;
  const std::int64_t shortest = count_code_points(end);
  if (length < shortest) fail_operation(fmt::format("expected length >= {}, got {}", shortest, length));
  if (leeway < 0) fail_operation(fmt::format("expected leeway >= 0, got {}", leeway));
  if (length_of(runtime, subject) - length <= leeway) return subject;
  if (!subject.is_string()) fail_operation(fmt::format("'{}' object has no attribute 'rsplit'", type_name(subject)));
  const std::string_view cut =
      std::string_view(subject.string()).substr(0, byte_of_code_point(subject.string(), length - shortest));
  const bool kill = bound.flag(runtime, 1, false);
  return std::string(kill ? cut : cut.substr(0, cut.rfind(' '))) + end;
}

Value count_words(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("wordcount", given, {});
  const std::string text = to_text(runtime, subject);
  std::int64_t words = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size(); at += code_point_size(text, at)) {
    const bool word = is_word_character(code_point_at(text, at));
    words += word && !in_word;
    in_word = word;
  }
  return words;
}

Value to_string(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("string", given, {});
  return to_string_value(runtime, subject);
}

Value safe(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("safe", given, {});
  return {to_text(runtime, subject), true};
}

Value force_escape(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound none("escape", given, {});
  const std::string text = to_text(runtime, subject);
  runtime.spend(6 * text.size());
  return {escape_html(text), true};
}

Value escape(Runtime& runtime, const Value& subject, const Arguments& given) {
  return subject.is_string() && subject.text().safe ? subject : force_escape(runtime, subject, given);
}

/// The tojson filter of `transformers`. Jinja's own one escapes for HTML.
Value json(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("tojson", given, {"ensure_ascii?", "indent?", "separators?", "sort_keys?"});
  JsonStyle style;
  style.ascii = bound.flag(runtime, 0, false);
  style.sort_keys = bound.flag(runtime, 3, false);
  if (bound.is_set(1)) {
    style.multiline = true;
    style.indent = bound[1].is_string() ? bound[1].string() : repeat(runtime, " ", bound.integer(1, 0));
    style.item_separator = ",";
  }
  if (bound.is_set(2)) {
    if (!bound[2].is_sequence() || bound[2].items().size() != 2 || !bound[2].items()[0].is_string() ||
        !bound[2].items()[1].is_string())
      fail_operation("separators are two strings");
    style.item_separator = bound[2].items()[0].string();
    style.key_separator = bound[2].items()[1].string();
  }
  return to_json(runtime, subject, style);
}

}  // namespace

std::span<const FilterEntry> text_filters() {
  static constexpr FilterEntry entries[] = {
      {"capitalize", filter_case<capitalize>},
      {"center", center},
      {"e", escape},
      {"escape", escape},
      {"forceescape", force_escape},
      {"indent", indent_text},
      {"lower", filter_case<to_lower>},
      {"replace", replace_text},
      {"safe", safe},
      {"string", to_string},
      {"title", filter_case<title_words>},
      {"tojson", json},
      {"trim", trim},
      {"truncate", truncate},
      {"upper", filter_case<to_upper>},
      {"wordcount", count_words},
  };
  return entries;
}

}  // namespace lathe::jinja
