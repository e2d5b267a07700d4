#include "tools/page/fill_page.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lathe::tools {

std::string escaped_html(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

std::string script_json(const nlohmann::ordered_json& json) {
  std::string result;
  for (const char c : json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace)) {
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  }
  return result;
}

std::string fill_page(std::string_view page, const std::vector<std::pair<std::string_view, std::string>>& texts) {
  std::vector<std::pair<std::size_t, std::size_t>> places;  // of each mark, and its number
  for (std::size_t i = 0; i < texts.size(); ++i) places.emplace_back(page.find(texts[i].first), i);
  std::ranges::sort(places);
  std::string result;
  std::size_t at = 0;
  for (const auto& [place, i] : places) {
    if (place == page.npos) continue;
    result += page.substr(at, place - at);
    result += texts[i].second;
    at = place + texts[i].first.size();
  }
  return result.append(page.substr(at));
}

}  // namespace lathe::tools
