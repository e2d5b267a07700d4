#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace lathe {

/// Parses JSON that has no key twice and nests at most `max_depth` deep. `file` is for messages. UserError [json].
nlohmann::json parse_strict_json(std::string_view text, std::string_view file, int max_depth = 16);

}  // namespace lathe
