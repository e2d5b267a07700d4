#pragma once

#include <optional>
#include <string>

#include "models/text/tokenizer/pipeline/fields.h"
#include "models/text/tokenizer/unicode/regex.h"

namespace lathe::text {

/// Pattern of Split and Replace: a text or a regular expression.
class Pattern {
 public:
  /// Reads {"String": text} or {"Regex": expression}. Throws UserError [tokenizer_field], [tokenizer_regex].
  explicit Pattern(const JsonNode& place);

  /// Returns the text; null for a regular expression.
  const std::string* literal() const { return regex_ ? nullptr : &text_; }

  /// Calls found(begin, end) for each match in `text`, from left to right.
  template <class Found>
  void for_each(std::string_view text, MatchMemory& memory, const Found& found) const {
    if (regex_) {
      try {
        for_each_match(*regex_, text, memory, found);
      } catch (const UserError& error) {
        throw error.with_note("in " + place_);
      }
    } else {
      for (std::size_t at = text.find(text_); at != std::string_view::npos; at = text.find(text_, at + text_.size()))
        found(at, at + text_.size());
    }
  }

 private:
  std::string text_, place_;
  std::optional<Regex> regex_;
};

}  // namespace lathe::text
