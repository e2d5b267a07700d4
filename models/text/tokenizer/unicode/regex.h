#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "models/text/tokenizer/pipeline/text_budget.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

/// Memory for matches, and the budget of the current text. Not thread-safe.
class MatchMemory {
 public:
  MatchMemory();
  ~MatchMemory();
  MatchMemory(MatchMemory&&) noexcept;

  /// Starts a text of `bytes` bytes.
  void begin(std::size_t bytes) { budget() = TextBudget(bytes); }
  TextBudget& budget();

 private:
  friend class Regex;
  struct Content;
  std::unique_ptr<Content> content_;
};

/// A regular expression in Oniguruma's syntax, compiled to machine code by PCRE2.
class Regex {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
    int mark = -1;  ///< number of the last (*MARK:number) on the path to the match
  };

  /// Throws UserError [tokenizer_regex].
  explicit Regex(std::string_view pattern);
  /// Compiles an expression in PCRE2's own syntax.
  static Regex native(const std::string& pattern);

  /// Finds the first match in `text` that starts at byte `from` or later. Returns false if there is none. `text` must
  /// be valid UTF-8. Throws UserError [tokenizer_regex] if the search exceeds the budget of `memory`.
  bool search(std::string_view text, std::size_t from, MatchMemory& memory, Match& match) const;

 private:
  struct Code;
  Regex() = default;
  void compile(const std::string& pattern, std::string_view shown, bool counts_all);

  std::shared_ptr<const Code> code_;
};

/// Calls found(begin, end) for successive matches, like Oniguruma's iterators: an empty match adjacent to the
/// previous match is skipped.
template <class Found>
void for_each_match(const Regex& regex, std::string_view text, MatchMemory& memory, const Found& found) {
  Regex::Match match;
  std::size_t from = 0, last_end = std::string_view::npos;
  while (from <= text.size() && regex.search(text, from, memory, match)) {
    if (match.begin == match.end && match.end == last_end) {
      from += from < text.size() ? character_size(text[from]) : 1;
      continue;
    }
    found(match.begin, match.end);
    from = last_end = match.end;
  }
}

}  // namespace lathe::text
