#include "runtime/files/strict_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/other_format.h"

namespace lathe {

namespace {

/// Returns the part "invalid literal" of "[json.exception.parse_error.101] parse error at line 1, column 9: syntax
/// error while parsing value - invalid literal; last read: 'x'; expected ...".
std::string reason_of(std::string_view message) {
  constexpr std::string_view before = " - ", after = "; last read";
  if (const auto at = message.find(before); at != std::string_view::npos)
    message.remove_prefix(at + before.size());
  else if (const auto bracket = message.find("] "); bracket != std::string_view::npos)
    message.remove_prefix(bracket + 2);
  message = message.substr(0, message.find(after));
  return std::string(message);
}

/// Returns a hint with the usual cause of an invalid word or byte.
std::string_view hint_of(std::string_view rest, std::string_view reason) {
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
    if (rest.starts_with(word)) return "; JSON has no NaN and no Infinity: write null, or leave the key out";
  if (reason.find("ill-formed UTF-8") != std::string_view::npos) return "; save the file as UTF-8";
  if (reason.find("surrogate") != std::string_view::npos) return "; half of a surrogate pair is no character";
  return {};
}

/// Returns the start of the word or number that contains byte `at`.
std::size_t word_start(std::string_view text, std::size_t at) {
  const auto is_part = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
  };
  while (at > 0 && is_part(text[at - 1])) --at;
  return at;
}

}  // namespace

std::string json_fault(std::string_view text, std::size_t position, std::string_view message) {
  constexpr std::size_t shown = 24;  // bytes shown before the fault
  const std::size_t at = std::min(position > 0 ? position - 1 : 0, text.size());
  const std::string_view before = text.substr(0, at);
  const std::size_t line_start = before.rfind('\n') + 1;  // 0 on the first line
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const auto is_continued = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  const auto column = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                    [&](char c) { return !is_continued(c); });
  std::size_t from = std::max(line_start, at - std::min(at, shown));
  while (from < at && is_continued(text[from])) ++from;
  const std::string reason = reason_of(message);
  std::string result = "not JSON: ";
  if (text.find('\n') < text.size() - 1) result += fmt::format("line {}, ", lines + 1);
  result += fmt::format("column {}: {}", column + 1, reason);
  if (from < at) result += fmt::format(" (after {})", quote(text.substr(from, at - from)));
  return result.append(hint_of(text.substr(word_start(text, at)), reason));
}

nlohmann::json parse_strict_json(std::string_view text, std::string_view file, int max_depth) {
  using nlohmann::json;
  std::vector<std::set<std::string>> keys;  // of each open object
  const json::parser_callback_t check = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= max_depth)
        throw UserError(fmt::format("{}: the JSON nests more than {} deep", file, max_depth), "json");
      if (event == json::parse_event_t::object_start) keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second)
        throw UserError(fmt::format("{}: the key {} occurs twice", file, quote(key)), "json");
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::parse_error& error) {
    reject_other_format(text, file);
    throw UserError(fmt::format("{}: {}", file, json_fault(text, error.byte, error.what())), "json");
  } catch (const json::exception& error) {
    reject_other_format(text, file);
    throw UserError(fmt::format("{}: not JSON: {}", file, quote(error.what())), "json");
  }
}

}  // namespace lathe
