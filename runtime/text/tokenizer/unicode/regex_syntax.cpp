#include "runtime/text/tokenizer/unicode/regex_syntax.h"

#include <fmt/core.h>

#include <cctype>

#include "runtime/text/tokenizer/unicode/regex_class.h"
#include "runtime/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

/// Oniguruma's grammar, read by recursive descent. PCRE2 gets every atom by itself, so that quantifiers can be added.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : cursor_{pattern} {}

  std::string all() {
    std::string out = alternatives(false);
    if (!cursor_.done()) cursor_.fail("')' is unmatched");
    return out;
  }

 private:
  /// Up to the end of the pattern or a ')' that belongs to a group outside. `is_extended`: spaces and comments
  /// between atoms mean nothing.
  std::string alternatives(bool is_extended) {
    const PatternCursor::Level level(cursor_);
    std::string out;
    while (!cursor_.done() && !cursor_.starts(")")) {
      if (is_extended && skip_comment()) continue;
      if (cursor_.skip("|")) {
        out += "|";
      } else if (cursor_.skip("(?#")) {
        while (!cursor_.done() && !cursor_.starts(")")) cursor_.take();
        close();
      } else {
        out += quantified(atom(is_extended));
      }
    }
    return out;
  }

  bool skip_comment() {
    if (std::isspace(static_cast<unsigned char>(cursor_.pattern[cursor_.at]))) {
      ++cursor_.at;
      return true;
    }
    if (!cursor_.starts("#")) return false;
    while (!cursor_.done() && !cursor_.skip("\n")) ++cursor_.at;
    return true;
  }

  std::string atom(bool is_extended) {
    if (cursor_.skip("(")) return group(is_extended);
    if (cursor_.skip("[")) return translate_class(cursor_);
    if (cursor_.skip("\\")) return escape();
    if (cursor_.starts("*") || cursor_.starts("+") || cursor_.starts("?"))
      cursor_.fail("a quantifier stands after nothing");
    const std::string_view next = cursor_.take();
    if (next == "." || next == "^" || next == "$") return std::string(next);
    const bool is_mark = next.size() == 1 && std::ispunct(static_cast<unsigned char>(next[0]));
    return is_mark ? "\\" + std::string(next) : std::string(next);
  }

  void close() {
    if (!cursor_.skip(")")) cursor_.fail("')' is missing");
  }

  std::string group(bool is_extended) {
    std::string opening = "(";
    if (cursor_.skip("?")) {
      if (cursor_.skip("<=") || cursor_.skip("<!")) {
        opening = std::string("(?<") + cursor_.pattern[cursor_.at - 1];
      } else if (cursor_.skip(":") || cursor_.skip("=") || cursor_.skip("!") || cursor_.skip(">")) {
        opening = std::string("(?") + cursor_.pattern[cursor_.at - 1];
      } else if (cursor_.skip("<")) {
        opening = "(?<" + name('>') + ">";
      } else if (cursor_.skip("'")) {
        opening = "(?<" + name('\'') + ">";
      } else {
        return options(is_extended);
      }
    }
    std::string out = opening + alternatives(is_extended) + ")";
    close();
    return out;
  }

  std::string name(char end) {
    std::string found;
    while (!cursor_.done() && (std::isalnum(static_cast<unsigned char>(cursor_.pattern[cursor_.at])) ||
                               cursor_.pattern[cursor_.at] == '_'))
      found.push_back(cursor_.pattern[cursor_.at++]);
    if (found.empty() || !cursor_.skip(std::string(1, end))) cursor_.fail("a group's name is malformed");
    return found;
  }

  /// After "(?": "i-m:...)", or "i)", which holds to the end of the group, with all its alternatives.
  std::string options(bool is_extended) {
    std::string on, off;
    for (bool is_on = true; !cursor_.done() && !cursor_.starts(")") && !cursor_.starts(":");) {
      if (cursor_.skip("-")) {
        is_on = false;
      } else if (cursor_.skip("x")) {
        is_extended = is_on;
      } else if (cursor_.skip("i")) {
        (is_on ? on : off) += "i";
      } else if (cursor_.skip("m")) {  // Oniguruma's name for "." that matches newlines
        (is_on ? on : off) += "s";
      } else {
        cursor_.fail("of groups with options, i, m and x are supported");
      }
    }
    const std::string opening = "(?" + on + (off.empty() ? "" : "-" + off) + ":";
    if (cursor_.skip(":")) {
      std::string out = opening + alternatives(is_extended) + ")";
      close();
      return out;
    }
    close();
    return opening + alternatives(is_extended) + ")";
  }

  std::string escape() {
    ClassEscape found;
    if (take_class_escape(cursor_, found)) return atom_of(found);
    if (cursor_.done()) cursor_.fail("it ends in a backslash");
    const char letter = cursor_.pattern[cursor_.at];
    const std::string word = "[" + std::string(word_items) + "]";
    switch (letter) {
      case 'b': ++cursor_.at; return "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
      case 'B': ++cursor_.at; return "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
      case 'O': ++cursor_.at; return "(?s:.)";
      case 'A':
      case 'z':
      case 'Z':
      case 'G':
      case 'K':
      case 'R':
      case 'X':
      case 'N': ++cursor_.at; return std::string("\\") + letter;
      case 'k':
        ++cursor_.at;
        if (!cursor_.skip("<")) cursor_.fail("a group's name is malformed");
        return "\\k<" + name('>') + ">";
      default: break;
    }
    if (letter >= '1' && letter <= '9') {
      std::string number;
      while (!cursor_.done() && std::isdigit(static_cast<unsigned char>(cursor_.pattern[cursor_.at])))
        number.push_back(cursor_.pattern[cursor_.at++]);
      return "\\g{" + number + "}";
    }
    return take_character_escape(cursor_);
  }

  /// {n}, {n,}, {,n}, {n,m}; what else starts with a brace stands for itself.
  bool take_interval(std::string& bounds) {
    const std::size_t start = cursor_.at;
    const auto digits = [&] {
      std::string found;
      while (!cursor_.done() && std::isdigit(static_cast<unsigned char>(cursor_.pattern[cursor_.at])))
        found.push_back(cursor_.pattern[cursor_.at++]);
      return found;
    };
    if (cursor_.skip("{")) {
      const std::string least = digits();
      const bool has_comma = cursor_.skip(",");
      const std::string most = has_comma ? digits() : "";
      if (cursor_.skip("}") && !(least.empty() && most.empty())) {
        bounds = "{" + (least.empty() ? "0" : least) + (has_comma ? "," : "") + most + "}";
        return true;
      }
    }
    cursor_.at = start;
    return false;
  }

  std::string quantified(std::string atom) {
    for (bool is_first = true; !cursor_.done(); is_first = false) {
      const auto repeat = [&](const std::string& how) {
        if (!is_first) atom = "(?:" + atom + ")";
        atom += how;
      };
      std::string bounds;
      if (cursor_.skip("*") || cursor_.skip("+") || cursor_.skip("?")) {
        std::string how(1, cursor_.pattern[cursor_.at - 1]);
        if (cursor_.skip("?")) {
          how += "?";
        } else if (cursor_.skip("+")) {
          how += "+";
        }
        repeat(how);
      } else if (take_interval(bounds)) {  // a '+' after it repeats the whole, a '?' after {n} makes it optional
        const bool is_range = bounds.find(',') != std::string::npos;
        repeat(bounds);
        if (is_range && cursor_.skip("?")) atom += "?";
      } else {
        break;
      }
    }
    return atom;
  }

  PatternCursor cursor_;
};

}  // namespace

std::string to_pcre2(std::string_view pattern) { return Translator(pattern).all(); }

}  // namespace lathe::text
