#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lathe {

/// Parses JSON without repeated keys that nests at most `max_depth` deep. `file` is used in messages. Throws
/// UserError [json].
nlohmann::json parse_strict_json(std::string_view text, std::string_view file, int max_depth = 16);

/// Returns the reason why `text` is not JSON, for messages: "not JSON: line 2, column 9: unexpected ']' (after '{"a":
/// [1,')". `position` is the number of bytes read up to the fault, and `message` the text of the parser's exception,
/// both as reported by the JSON library. The message has no line number if the text has a single line.
std::string json_fault(std::string_view text, std::size_t position, std::string_view message);

}  // namespace lathe
