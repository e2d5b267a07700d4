#pragma once

#include <string>
#include <string_view>

namespace lathe::text {

/// A regular expression in Oniguruma's syntax, which tokenizer.json has, in that of PCRE2: classes within classes and
/// their intersections, Oniguruma's \h, \w and POSIX brackets, its names of properties, (?m), {n,m}+ and more.
/// UserError [tokenizer_regex] for what is malformed or has no counterpart.
std::string to_pcre2(std::string_view pattern);

}  // namespace lathe::text
