#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lathe {

/// Parses JSON that has no key twice and nests at most `max_depth` deep. `file` is for messages. UserError [json].
nlohmann::json parse_strict_json(std::string_view text, std::string_view file, int max_depth = 16);

/// Returns the reason why `text` is not JSON, for messages: "not JSON: line 2, column 9: unexpected ']' (after '{"a":
/// [1,')". `position` is the number of bytes read up to the fault, and `message` the text of the parser's exception,
/// both as the JSON library reports them. Texts of one line have no line in the message.
std::string json_fault(std::string_view text, std::size_t position, std::string_view message);

}  // namespace lathe
