#pragma once

#include <string>
#include <string_view>

namespace lathe::syntax {

/// Returns the text in double quotes, with escapes, on one line.
std::string quoted(std::string_view text);
/// Returns `%x`, or `%"odd name"` if `name` is not a plain name. `sigil` is % or @.
std::string sigiled(char sigil, std::string_view name);

/// Returns the name as one word of IR text, or in double quotes.
std::string name_or_quoted(std::string_view name);

}  // namespace lathe::syntax
