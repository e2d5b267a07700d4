#include "runtime/files/strict_json.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/json_fault.h"
#include "runtime/files/other_format.h"

namespace lathe {

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
