#pragma once

#include <string>
#include <string_view>

namespace lathe::text {

/// Reads a pattern from left to right.
struct PatternCursor {
  std::string_view pattern;
  std::size_t at = 0;
  int depth = 0;  ///< nesting depth of groups and classes

  bool done() const { return at == pattern.size(); }
  bool starts(std::string_view what) const { return pattern.substr(at).starts_with(what); }
  /// Skips `what` if it is next. Returns whether it was.
  bool skip(std::string_view what);
  /// Returns the next character and skips it.
  std::string_view take();
  /// Throws UserError [tokenizer_regex] at the current byte.
  [[noreturn]] void fail(std::string_view message) const;
  /// Increases the nesting depth during its lifetime. Throws if the nesting is too deep.
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

/// Translates the rest of an Oniguruma class after "[", which may contain nested classes and "&&". Returns PCRE2's
/// pattern for one character.
std::string translate_class(PatternCursor& cursor);

/// A class escape such as \s or \p{Letter}. `item` is written inside brackets.
struct ClassEscape {
  std::string item;
  bool is_negated = false;  ///< matches all other characters
};

/// Parses the rest of a class escape after the backslash. Returns false and consumes nothing for other escapes.
bool take_class_escape(PatternCursor& cursor, ClassEscape& escape);
/// Returns the escape as a pattern for one character.
std::string atom_of(const ClassEscape& escape);

/// Parses the rest of a character escape after the backslash. Returns "\x{...}".
std::string take_character_escape(PatternCursor& cursor);

/// Oniguruma's \w inside brackets.
extern const std::string_view word_items;

}  // namespace lathe::text
