#pragma once

#include <string>
#include <string_view>

namespace lathe::text {

/// A pattern for PCRE2 with callouts that count the work of a search (MatchMemory).
struct TranslatedPattern {
  std::string text;
  /// The work between two callouts is bounded by a constant for each character that the search moves by. Otherwise,
  /// every item of the pattern needs a callout (PCRE2_AUTO_CALLOUT), which is slower.
  bool counts_itself = true;
};

/// Translates a regular expression from Oniguruma's syntax, which tokenizer.json uses, to PCRE2's. Supports nested
/// classes and their intersections, Oniguruma's \h, \w and POSIX brackets, its property names, (?m), {n,m}+ and more.
/// Throws UserError [tokenizer_regex] for malformed or untranslatable patterns.
TranslatedPattern to_pcre2(std::string_view pattern);

}  // namespace lathe::text
