#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe::tools {

/// Escapes text for HTML.
std::string escaped_html(std::string_view text);

/// Returns JSON for a <script> element: escapes text that could end the script or start an HTML comment.
std::string script_json(const nlohmann::ordered_json& json);

/// Returns a page with each mark replaced once by its text. Marks within the texts are not replaced.
std::string fill_page(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& texts);

}  // namespace lathe::tools
