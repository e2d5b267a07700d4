#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "models/text/template/library/functions.h"
#include "models/text/template/library/library.h"
#include "models/text/template/library/strings.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/sequences.h"
#include "models/text/template/values/text_forms.h"
#include "models/text/template/values/value_operators.h"

/// Filters that return numbers.
/// Filters on text. They convert other values to text first.
namespace lathe::jinja {

const FilterEntry* find_filter(std::string_view name) {
  static const std::map<std::string_view, const FilterEntry*> all = [] {
    std::map<std::string_view, const FilterEntry*> entries;
    for (const auto group : {text_filters(), number_filters(), sequence_filters(), selection_filters()})
      for (const FilterEntry& entry : group) entries.emplace(entry.name, &entry);
    return entries;
  }();
  const auto at = all.find(name);
  return at == all.end() ? nullptr : at->second;
}

bool is_unsupported_filter(std::string_view name) {
  static constexpr std::string_view names[] = {"filesizeformat", "format",    "groupby", "pprint",   "random",
                                               "striptags",      "urlencode", "urlize",  "wordwrap", "xmlattr"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

AttributeGetter::AttributeGetter(Runtime& runtime, const Value& attribute, bool ignore_case, Value otherwise)
    : ignore_case_(ignore_case), otherwise_(std::move(otherwise)) {
  if (attribute.is_none() || attribute.is_missing()) return;
  if (!attribute.is_string()) {
    steps_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.string();
  runtime.spend(rest.size() * sizeof(Value));
  for (;;) {
    const std::string_view step = rest.substr(0, rest.find('.'));
    std::int64_t number = 0;
    const auto read = std::from_chars(step.data(), step.data() + step.size(), number);
    const bool is_number =
        !step.empty() && step[0] != '-' && read.ec == std::errc() && read.ptr == step.data() + step.size();
    steps_.push_back(is_number ? Value(number) : Value(step));
    if (step.size() == rest.size()) return;
    rest.remove_prefix(step.size() + 1);
  }
}

Value AttributeGetter::operator()(Runtime& runtime, Value item) const {
  for (const Value& step : steps_) {
    item = element_of(runtime, item, step);
    if (item.is_undefined() && !otherwise_.is_missing()) item = otherwise_;
  }
  return ignore_case_ && item.is_string() ? Value(to_lower(item.string())) : item;
}

namespace {

Value absolute(Runtime&, const Value& subject, const Arguments& given) {
  const Bound none("abs", given, {});
  if (!subject.is_number()) fail_operation(fmt::format("bad operand type for abs(): '{}'", type_name(subject)));
  if (!subject.is_integer()) return std::abs(subject.real());
  return subject.integer() < 0 ? unary(UnaryOp::minus, subject) : Value(subject.integer());
}

Value round(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("round", given, {"precision?", "method?"});
  const std::string method = bound.has(1) ? bound.string(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail_operation("method must be common, ceil or floor");
  const std::int64_t digits = bound.integer(0, 0);
  if (method == "common") {
    if (!subject.is_number())
      fail_operation(fmt::format("type {} doesn't define __round__ method", type_name(subject)));
    return round_number(subject, digits);
  }
  const Value unit = binary(runtime, BinaryOp::power, 10, digits);
  const Value scaled = binary(runtime, BinaryOp::multiply, subject, unit);
  if (!scaled.is_number()) fail_operation(fmt::format("must be real number, not {}", type_name(scaled)));
  if (std::isnan(scaled.real())) fail_operation("cannot convert float NaN to integer");
  if (std::isinf(scaled.real())) fail_operation("cannot convert float infinity to integer");
  const double whole = method == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real());
  return (whole + 0.0) / unit.real();  // adding 0.0 removes -0, because Python has an integer here
}

Value to_integer(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("int", given, {"default?", "base?"});
  require_defined(subject);
  const Value otherwise = bound.get(0, 0);
  if (subject.is_integer()) return subject.integer();
  std::optional<double> number;
  if (subject.is_string()) {
    runtime.budget().spend_reading(subject.string().size());
    if (const auto integer = parse_integer(subject.string(), bound.integer(1, 10))) return *integer;
    number = parse_real(subject.string());
  } else if (subject.is(Kind::real)) {
    number = subject.real();
  }
  return number && std::isfinite(*number) ? Value(truncate_to_integer(*number)) : otherwise;
}

Value to_real(Runtime& runtime, const Value& subject, const Arguments& given) {
  const Bound bound("float", given, {"default?"});
  require_defined(subject);
  if (subject.is_number()) return subject.real();
  if (subject.is_string()) {
    runtime.budget().spend_reading(subject.string().size());
    if (const auto number = parse_real(subject.string())) return *number;
  }
  return bound.get(0, 0.0);
}

}  // namespace

std::span<const FilterEntry> number_filters() {
  static constexpr FilterEntry entries[] = {
      {"abs", absolute}, {"float", to_real}, {"int", to_integer}, {"round", round}};
  return entries;
}

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
