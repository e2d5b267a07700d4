#pragma once

#include <string>
#include <string_view>

/// Upper and lower case as in Python, except for letters whose other case is several letters (ligatures).
namespace lathe::jinja {

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// Returns `text` with the first letter of each word in title case and all others in lower case. Words are runs of
/// letters.
std::string to_title(std::string_view text);
/// Returns `text` with the first letter in title case and all others in lower case.
std::string capitalize(std::string_view text);

/// Return whether there are cased letters and all of them are in this case.
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);
bool is_title(std::string_view text);

}  // namespace lathe::jinja
