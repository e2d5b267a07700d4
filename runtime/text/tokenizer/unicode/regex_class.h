#pragma once

#include <string>
#include <string_view>

namespace lathe::text {

/// Reads a pattern from left to right.
struct PatternCursor {
  std::string_view pattern;
  std::size_t at = 0;
  int depth = 0;  ///< of groups and classes

  bool done() const { return at == pattern.size(); }
  bool starts(std::string_view what) const { return pattern.substr(at).starts_with(what); }
  /// Steps over `what` where it stands.
  bool skip(std::string_view what);
  /// The whole character that stands next, which is stepped over.
  std::string_view take();
  /// UserError [tokenizer_regex] at the present byte.
  [[noreturn]] void fail(std::string_view message) const;
  /// One level deeper, until the end of the block; fails where there are too many.
  class Level {
   public:
    explicit Level(PatternCursor& cursor);
    ~Level() { --cursor_.depth; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    PatternCursor& cursor_;
  };
};

/// PCRE2's pattern for one character of a class: after "[" stands the rest of a class of Oniguruma, which may hold
/// classes and "&&".
std::string translate_class(PatternCursor& cursor);

/// What a class escape stands for: \s, \p{Letter}, ... `item` goes inside of brackets.
struct ClassEscape {
  std::string item;
  bool is_negated = false;  ///< all characters but those
};

/// Takes the rest of an escape after the backslash if it stands for a class; false and nothing taken otherwise.
bool take_class_escape(PatternCursor& cursor, ClassEscape& escape);
/// As a pattern for one character.
std::string atom_of(const ClassEscape& escape);

/// Takes the rest of an escape after the backslash that stands for one character, which may be itself: "\x{...}".
std::string take_character_escape(PatternCursor& cursor);

/// \w of Oniguruma, inside of brackets.
extern const std::string_view word_items;

}  // namespace lathe::text
