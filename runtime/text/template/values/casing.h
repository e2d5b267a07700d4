#pragma once

#include <string>
#include <string_view>

/// Upper and lower case as Python has them, but for rare letters of which the other case is several (ligatures).
namespace lathe::jinja {

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// The first letter of each word in title case, all others in lower case; words are runs of letters.
std::string to_title(std::string_view text);
/// The first letter in title case, all others in lower case.
std::string capitalize(std::string_view text);

/// Whether there is a letter with a case, and none of the other case.
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);
bool is_title(std::string_view text);

}  // namespace lathe::jinja
