#include "models/text/tokenizer/unicode/regex_syntax.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/text/tokenizer/unicode/regex_class.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

/// Recursive-descent parser of Oniguruma's grammar. Emits each atom separately for PCRE2, so that quantifiers can be
/// added.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : cursor_{pattern} {}

  TranslatedPattern all() {
    const Part whole = alternatives(false);
    if (!cursor_.done()) cursor_.fail("')' is unmatched");
    return {whole.text, counts_itself_ && whole.ways <= most_ways && whole.text.size() <= long_pattern};
  }

 private:
  static constexpr std::uint64_t most_ways = 256;  ///< maximum of Part::ways
  static constexpr std::uint64_t few_repeats =
      8;  ///< repeats up to this number are `ways`; more are counted at callouts
  static constexpr std::uint64_t most_least = 2000;  ///< maximum of a quantifier's minimum
  static constexpr std::size_t long_pattern = 4096;  ///< bytes

  /// A part of the pattern with an estimate of its work.
  struct Part {
    std::string text;
    std::uint64_t ways = 1;  ///< number of ways to match at one position, without counted repeats
    bool can_fail = true;
    bool is_long = false;  ///< repeats without a small upper bound
    bool is_group = false;
  };

  /// Concatenates the items of an alternative. An item gets callouts if it may be retried after a later item failed.
  Part sequence(std::vector<Part>& items) const {
    Part all{.text = {}};
    bool fails_later = depth_ > 0;
    for (std::size_t i = items.size(); i-- > 0;) {
      Part& item = items[i];
      // The first item needs no callout before it, because a match starts there.
      if (fails_later && item.is_long) item.text = (i > 0 || depth_ > 0 ? "(?C0)" : "") + item.text + "(?C0)";
      if (fails_later) all.ways = std::min(all.ways * item.ways, 2 * most_ways);
      fails_later = fails_later || item.can_fail;
    }
    for (const Part& item : items) all.text += item.text;
    items.clear();
    return all;
  }

  /// Parses alternatives up to the end of the pattern or an unmatched ')'. `is_extended`: ignore white space and
  /// comments between atoms.
  Part alternatives(bool is_extended) {
    const PatternCursor::Level level(cursor_);
    Part out{.text = {}, .ways = 0};
    std::vector<Part> items;
    const auto finish_alternative = [&] {
      const Part all = sequence(items);
      out.text += all.text;
      out.ways = std::max<std::uint64_t>(depth_ > 0 ? out.ways + all.ways : 0, all.ways);
    };
    while (!cursor_.done() && !cursor_.starts(")")) {
      if (is_extended && skip_comment()) continue;
      if (cursor_.skip("|")) {
        finish_alternative();
        out.text += "|";
      } else if (cursor_.skip("(?#")) {
        while (!cursor_.done() && !cursor_.starts(")")) cursor_.take();
        close();
      } else {
        items.push_back(quantified(atom(is_extended)));
      }
    }
    finish_alternative();
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

  Part atom(bool is_extended) {
    if (cursor_.skip("(")) return group(is_extended);
    if (cursor_.skip("[")) return {.text = translate_class(cursor_)};
    if (cursor_.skip("\\")) return {.text = escape()};
    if (cursor_.starts("*") || cursor_.starts("+") || cursor_.starts("?"))
      cursor_.fail("a quantifier follows nothing");
    const std::string_view next = cursor_.take();
    if (next == "." || next == "^" || next == "$") return {.text = std::string(next)};
    const bool is_mark = next.size() == 1 && std::ispunct(static_cast<unsigned char>(next[0]));
    return {.text = is_mark ? "\\" + std::string(next) : std::string(next)};
  }

  void close() {
    if (!cursor_.skip(")")) cursor_.fail("')' is missing");
  }

  Part group(bool is_extended) {
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
    return group_of(opening, is_extended);
  }

  /// Parses the content and the end of a group after its opening.
  Part group_of(const std::string& opening, bool is_extended) {
    ++depth_;
    const Part inside = alternatives(is_extended);
    --depth_;
    close();
    return {.text = opening + inside.text + ")", .ways = inside.ways, .is_group = true};
  }

  std::string name(char end) {
    std::string found;
    while (!cursor_.done() && (std::isalnum(static_cast<unsigned char>(cursor_.pattern[cursor_.at])) ||
                               cursor_.pattern[cursor_.at] == '_'))
      found.push_back(cursor_.pattern[cursor_.at++]);
    if (found.empty() || !cursor_.skip(std::string(1, end))) cursor_.fail("a group's name is malformed");
    return found;
  }

  /// Parses options after "(?": "i-m:...)", or "i)", which applies to the rest of the group including all its
  /// alternatives.
  Part options(bool is_extended) {
    std::string on, off;
    for (bool is_on = true; !cursor_.done() && !cursor_.starts(")") && !cursor_.starts(":");) {
      if (cursor_.skip("-")) {
        is_on = false;
      } else if (cursor_.skip("x")) {
        is_extended = is_on;
      } else if (cursor_.skip("i")) {
        (is_on ? on : off) += "i";
      } else if (cursor_.skip("m")) {  // Oniguruma's option for "." matching newlines
        (is_on ? on : off) += "s";
      } else {
        cursor_.fail("of groups with options, i, m and x are supported");
      }
    }
    const std::string opening = "(?" + on + (off.empty() ? "" : "-" + off) + ":";
    if (cursor_.skip(":")) return group_of(opening, is_extended);
    close();
    const Part inside = alternatives(is_extended);
    return {.text = opening + inside.text + ")", .ways = inside.ways, .is_group = true};
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
      case 'N': ++cursor_.at; return std::string("\\") + letter;
      case 'K':
      case 'R':
      case 'X':
        ++cursor_.at;
        counts_itself_ = false;
        return std::string("\\") + letter;
      case 'k':
        ++cursor_.at;
        counts_itself_ = false;
        if (!cursor_.skip("<")) cursor_.fail("a group's name is malformed");
        return "\\k<" + name('>') + ">";
      default: break;
    }
    if (letter >= '1' && letter <= '9') {
      counts_itself_ = false;
      std::string number;
      while (!cursor_.done() && std::isdigit(static_cast<unsigned char>(cursor_.pattern[cursor_.at])))
        number.push_back(cursor_.pattern[cursor_.at++]);
      return "\\g{" + number + "}";
    }
    return take_character_escape(cursor_);
  }

  struct Bounds {
    std::string text;
    std::uint64_t least = 0, most = 0;
  };

  /// Parses {n}, {n,}, {,n} or {n,m}. Other text that starts with a brace is literal.
  std::optional<Bounds> take_interval() {
    const std::size_t start = cursor_.at;
    const auto digits = [&] {
      std::string found;
      while (!cursor_.done() && std::isdigit(static_cast<unsigned char>(cursor_.pattern[cursor_.at])))
        found.push_back(cursor_.pattern[cursor_.at++]);
      return found;
    };
    const auto number = [&](const std::string& text, std::uint64_t otherwise) {
      if (text.empty()) return otherwise;
      if (text.size() > 5) cursor_.fail("a repeat is too large");
      return static_cast<std::uint64_t>(std::stoul(text));
    };
    if (cursor_.skip("{")) {
      const std::string least = digits();
      const bool has_comma = cursor_.skip(",");
      const std::string most = has_comma ? digits() : "";
      if (cursor_.skip("}") && !(least.empty() && most.empty())) {
        const std::uint64_t least_count = number(least, 0);
        if (least_count > most_least) cursor_.fail(fmt::format("more than {} repeats are demanded", most_least));
        return Bounds{"{" + (least.empty() ? "0" : least) + (has_comma ? "," : "") + most + "}", least_count,
                      has_comma ? number(most, UINT64_MAX) : least_count};
      }
    }
    cursor_.at = start;
    return std::nullopt;
  }

  /// Repeats `part` with the quantifier `how`.
  void repeat(Part& part, const std::string& how, bool is_first, std::uint64_t least, std::uint64_t most) {
    if (most > 1 && (part.is_group || !is_first)) counts_itself_ = false;
    part.text = (is_first ? part.text : "(?:" + part.text + ")") + how;
    // Weight for attempts that fail before the required number of repeats.
    if (least > few_repeats) part.text = fmt::format("(?C{})", least / 8) + part.text;
    const bool is_few = most - least <= few_repeats;
    part.is_long = part.is_long || !is_few;
    if (is_few) part.ways = std::min(part.ways * (most - least + 1), 2 * most_ways);
    part.can_fail = part.can_fail && least > 0;
  }

  Part quantified(Part part) {
    for (bool is_first = true; !cursor_.done(); is_first = false) {
      if (cursor_.skip("*") || cursor_.skip("+") || cursor_.skip("?")) {
        const char sign = cursor_.pattern[cursor_.at - 1];
        std::string how(1, sign);
        if (cursor_.skip("?")) {
          how += "?";
        } else if (cursor_.skip("+")) {
          how += "+";
        }
        repeat(part, how, is_first, sign == '+' ? 1 : 0, sign == '?' ? 1 : UINT64_MAX);
      } else if (const auto bounds = take_interval()) {
        // After an interval, '+' repeats it, and '?' after {n} makes it optional.
        const bool is_range = bounds->text.find(',') != std::string::npos;
        repeat(part, bounds->text + (is_range && cursor_.skip("?") ? "?" : ""), is_first, bounds->least,
               bounds->most);
      } else {
        break;
      }
    }
    return part;
  }

  bool counts_itself_ = true;
  int depth_ = 0;  ///< of groups that may be followed by other items
  PatternCursor cursor_;
};

}  // namespace

TranslatedPattern to_pcre2(std::string_view pattern) { return Translator(pattern).all(); }

}  // namespace lathe::text
