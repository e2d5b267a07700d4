#pragma once

#include <string>
#include <string_view>

namespace lathe::text {

/// A pattern for PCRE2 with callouts, at which the work of a search is counted (MatchMemory).
struct TranslatedPattern {
  std::string text;
  /// Between two of its callouts only a constant is done for each character that the search moves by. Otherwise every
  /// item of the pattern needs a callout (PCRE2_AUTO_CALLOUT), which is slower.
  bool counts_itself = true;
};

/// A regular expression in Oniguruma's syntax, which tokenizer.json has, in that of PCRE2: classes within classes and
/// their intersections, Oniguruma's \h, \w and POSIX brackets, its names of properties, (?m), {n,m}+ and more.
/// UserError [tokenizer_regex] for what is malformed or has no counterpart.
TranslatedPattern to_pcre2(std::string_view pattern);

}  // namespace lathe::text
