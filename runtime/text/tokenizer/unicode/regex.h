#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/text/tokenizer/pipeline/text_budget.h"
#include "runtime/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

/// Memory for matches, and the budget of the text that is tokenized. One thread at a time.
class MatchMemory {
 public:
  MatchMemory();
  ~MatchMemory();
  MatchMemory(MatchMemory&&) noexcept;

  /// Starts a text of this size in bytes.
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
    int mark = -1;  ///< the number of the last (*MARK:number) on the way to the match
  };

  /// UserError [tokenizer_regex].
  explicit Regex(std::string_view pattern);
  /// An expression in PCRE2's own syntax.
  static Regex native(const std::string& pattern);

  /// The first match in `text`, which is valid UTF-8, that starts at byte `from` or later; false where there is none.
  /// UserError [tokenizer_regex] for a search that needs more work than the budget of `memory` has.
  bool search(std::string_view text, std::size_t from, MatchMemory& memory, Match& match) const;

 private:
  struct Code;
  Regex() = default;
  void compile(const std::string& pattern, std::string_view shown, bool counts_all);

  std::shared_ptr<const Code> code_;
};

/// Calls found(begin, end) for one match after the other, as Oniguruma's iterators do: an empty match that touches
/// the match before it does not count.
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
