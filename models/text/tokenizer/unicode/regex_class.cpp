#include "models/text/tokenizer/unicode/regex_class.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "ir/support/error.h"
#include "models/text/tokenizer/unicode/utf8.h"
#include "runtime/files/file_io.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace lathe::text {

// Alphabetic: letters, letter numbers, some marks, and letters in circles and squares.
const std::string_view word_items =
    R"(\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

namespace {

constexpr int deepest = 100;

using Names = std::pair<std::string_view, std::string_view>;

/// Names of properties in lower case without separators, and their form inside PCRE2's brackets.
constexpr Names properties[] = {{"other", R"(\p{C})"},
                                {"control", R"(\p{Cc})"},
                                {"format", R"(\p{Cf})"},
                                {"unassigned", R"(\p{Cn})"},
                                {"privateuse", R"(\p{Co})"},
                                {"surrogate", R"(\p{Cs})"},
                                {"letter", R"(\p{L})"},
                                {"casedletter", R"(\p{Lu}\p{Ll}\p{Lt})"},
                                {"lc", R"(\p{Lu}\p{Ll}\p{Lt})"},
                                {"lowercaseletter", R"(\p{Ll})"},
                                {"modifierletter", R"(\p{Lm})"},
                                {"otherletter", R"(\p{Lo})"},
                                {"titlecaseletter", R"(\p{Lt})"},
                                {"uppercaseletter", R"(\p{Lu})"},
                                {"mark", R"(\p{M})"},
                                {"combiningmark", R"(\p{M})"},
                                {"spacingmark", R"(\p{Mc})"},
                                {"enclosingmark", R"(\p{Me})"},
                                {"nonspacingmark", R"(\p{Mn})"},
                                {"number", R"(\p{N})"},
                                {"decimalnumber", R"(\p{Nd})"},
                                {"letternumber", R"(\p{Nl})"},
                                {"othernumber", R"(\p{No})"},
                                {"punctuation", R"(\p{P})"},
                                {"connectorpunctuation", R"(\p{Pc})"},
                                {"dashpunctuation", R"(\p{Pd})"},
                                {"closepunctuation", R"(\p{Pe})"},
                                {"finalpunctuation", R"(\p{Pf})"},
                                {"initialpunctuation", R"(\p{Pi})"},
                                {"otherpunctuation", R"(\p{Po})"},
                                {"openpunctuation", R"(\p{Ps})"},
                                {"symbol", R"(\p{S})"},
                                {"currencysymbol", R"(\p{Sc})"},
                                {"modifiersymbol", R"(\p{Sk})"},
                                {"mathsymbol", R"(\p{Sm})"},
                                {"othersymbol", R"(\p{So})"},
                                {"separator", R"(\p{Z})"},
                                {"lineseparator", R"(\p{Zl})"},
                                {"paragraphseparator", R"(\p{Zp})"},
                                {"spaceseparator", R"(\p{Zs})"},
                                {"any", R"(\x{0}-\x{10FFFF})"},
                                {"assigned", R"(\P{Cn})"},
                                {"alnum", R"(\p{Alphabetic}\p{Nd})"},
                                {"alpha", R"(\p{Alphabetic})"},
                                {"ascii", R"(\x00-\x7F)"},
                                {"blank", R"(\t\p{Zs})"},
                                {"cntrl", R"(\p{Cc})"},
                                {"digit", R"(\p{Nd})"},
                                {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
                                {"lower", R"(\p{Lowercase})"},
                                {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}\p{Cf}\p{Co})"},
                                {"punct", R"(\p{P}\p{S})"},
                                {"space", R"(\p{White_Space})"},
                                {"upper", R"(\p{Uppercase})"},
                                {"xdigit", "0-9A-Fa-f"}};

bool compiles(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(), PCRE2_UTF, &error,
                                   &offset, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

/// Returns the bracket items of a property: a category, a POSIX class, a script or a binary property.
std::string property_items(const PatternCursor& cursor, std::string_view name) {
  std::string key;
  for (const char c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != ' ' && c != '-')
      cursor.fail(fmt::format("the property {} has an odd name", quote(name)));
    if (std::isalnum(static_cast<unsigned char>(c)))
      key.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  if (key == "word") return std::string(word_items);
  for (const auto& [known, items] : properties)
    if (key == known) return std::string(items);
  if (key.size() <= 2 && !key.empty()) {
    key[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(key[0])));
    if (compiles("\\p{" + key + "}")) return "\\p{" + key + "}";
  }
  for (const std::string& items : {fmt::format("\\p{{sc:{}}}", name), fmt::format("\\p{{{}}}", name)})
    if (compiles(items)) return items;
  cursor.fail(fmt::format("there is no property {}", quote(name)));
}

std::string from_code(const PatternCursor& cursor, unsigned long code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) cursor.fail("this is no code point");
  return fmt::format("\\x{{{:X}}}", code);
}

/// Parses at most `most` digits in a base. Fails if there are fewer than `least`.
unsigned long take_digits(PatternCursor& cursor, int base, std::size_t least, std::size_t most) {
  std::size_t count = 0;
  unsigned long value = 0;
  for (; count < most && !cursor.done(); ++count, ++cursor.at) {
    const char c = cursor.pattern[cursor.at];
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
    if (digit >= base) break;
    value = value * static_cast<unsigned long>(base) + static_cast<unsigned long>(digit);
  }
  if (count < least) cursor.fail("digits are missing");
  return value;
}

/// A union of classes, as bracket items and as alternatives.
struct Union {
  std::string items;               ///< items inside brackets
  std::vector<std::string> atoms;  ///< patterns that match one character

  std::string atom() const {
    if (atoms.empty()) return "[" + items + "]";
    std::string all = "(?:";
    if (!items.empty()) all += "[" + items + "]|";
    for (std::size_t i = 0; i < atoms.size(); ++i) all += (i > 0 ? "|" : "") + atoms[i];
    return all + ")";
  }
  bool empty() const { return items.empty() && atoms.empty(); }
};

void add(Union& to, const ClassEscape& escape) {
  if (!escape.is_negated) {
    to.items += escape.item;
  } else {
    to.atoms.push_back("[^" + escape.item + "]");
  }
}

bool take_posix(PatternCursor& cursor, Union& to) {
  if (!cursor.starts("[:")) return false;
  const std::size_t end = cursor.pattern.find(":]", cursor.at);
  if (end == std::string_view::npos) return false;
  std::string_view name = cursor.pattern.substr(cursor.at + 2, end - cursor.at - 2);
  const bool is_negated = name.starts_with('^');
  if (is_negated) name.remove_prefix(1);
  if (name.empty() || !std::all_of(name.begin(), name.end(), [](char c) { return c >= 'a' && c <= 'z'; }))
    return false;
  add(to, {property_items(cursor, name), is_negated});
  cursor.at = end + 2;
  return true;
}

/// Returns the next character of a class in PCRE2's syntax. The next character must not be a bracket or a class
/// escape.
std::string take_member(PatternCursor& cursor) {
  if (cursor.done()) cursor.fail("a class is not closed");
  if (cursor.skip("\\")) return cursor.skip("b") ? "\\x{8}" : take_character_escape(cursor);
  const std::string_view member = cursor.take();
  return member.size() == 1 && std::ispunct(static_cast<unsigned char>(member[0])) ? "\\" + std::string(member)
                                                                                   : std::string(member);
}

/// Parses a member or a range of members.
void take_range(PatternCursor& cursor, Union& to) {
  to.items += take_member(cursor);
  if (!cursor.starts("-") || cursor.starts("-]") || cursor.starts("-&&") || cursor.starts("-[")) return;
  const std::size_t dash = cursor.at++;
  ClassEscape escape;
  if (cursor.skip("\\") && take_class_escape(cursor, escape)) {  // the dash is literal, as in [a-\d]
    to.items += "\\-";
    add(to, escape);
    return;
  }
  cursor.at = dash + 1;
  to.items += "-" + take_member(cursor);
}

}  // namespace

bool PatternCursor::skip(std::string_view what) {
  if (!starts(what)) return false;
  at += what.size();
  return true;
}

std::string_view PatternCursor::take() {
  const std::string_view next = pattern.substr(at, character_size(pattern[at]));
  at += next.size();
  return next;
}

void PatternCursor::fail(std::string_view message) const {
  throw UserError(
      fmt::format("the regular expression {} is not understood at byte {}: {}", quote(pattern), at, message),
      "tokenizer_regex");
}

PatternCursor::Level::Level(PatternCursor& cursor) : cursor_(cursor) {
  if (++cursor.depth > deepest) cursor.fail(fmt::format("it nests more than {} deep", deepest));
}

std::string atom_of(const ClassEscape& escape) { return (escape.is_negated ? "[^" : "[") + escape.item + "]"; }

bool take_class_escape(PatternCursor& cursor, ClassEscape& escape) {
  if (cursor.done()) return false;
  const char letter = cursor.pattern[cursor.at];
  const auto given = [&](std::string_view items, bool is_negated) {
    escape = {std::string(items), is_negated};
    ++cursor.at;
    return true;
  };
  switch (letter) {
    case 's': return given(R"(\p{White_Space})", false);
    case 'S': return given(R"(\p{White_Space})", true);
    case 'd': return given(R"(\p{Nd})", false);
    case 'D': return given(R"(\p{Nd})", true);
    case 'w': return given(word_items, false);
    case 'W': return given(word_items, true);
    case 'h': return given("0-9A-Fa-f", false);
    case 'H': return given("0-9A-Fa-f", true);
    case 'p':
    case 'P': break;
    default: return false;
  }
  ++cursor.at;
  const std::size_t end = cursor.pattern.find('}', cursor.at);
  if (!cursor.skip("{") || end == std::string_view::npos) cursor.fail("a property's name is missing");
  const bool is_inverse = cursor.skip("^");
  const std::string_view name = cursor.pattern.substr(cursor.at, end - cursor.at);
  escape = {property_items(cursor, name), (letter == 'P') != is_inverse};
  cursor.at = end + 1;
  return true;
}

std::string take_character_escape(PatternCursor& cursor) {
  if (cursor.done()) cursor.fail("it ends in a backslash");
  const std::string_view next = cursor.take();
  switch (next[0]) {
    case 't':
    case 'n':
    case 'r':
    case 'f':
    case 'a':
    case 'e': return "\\" + std::string(next);
    case 'v': return "\\x{B}";
    case 'x': {
      if (!cursor.skip("{")) return from_code(cursor, take_digits(cursor, 16, 0, 2));
      const unsigned long code = take_digits(cursor, 16, 1, 8);
      if (!cursor.skip("}")) cursor.fail("'}' is missing");
      return from_code(cursor, code);
    }
    case 'u': return from_code(cursor, take_digits(cursor, 16, 4, 4));
    case '0': return from_code(cursor, take_digits(cursor, 8, 0, 2));
    default: break;
  }
  if (std::isalnum(static_cast<unsigned char>(next[0])))
    cursor.fail(fmt::format("the escape \\{} is not supported", next));
  return next.size() == 1 && std::ispunct(static_cast<unsigned char>(next[0])) ? "\\" + std::string(next)
                                                                               : std::string(next);
}

std::string translate_class(PatternCursor& cursor) {
  const PatternCursor::Level level(cursor);
  const bool is_negated = cursor.skip("^");
  std::vector<Union> terms(1);  // separated by "&&"
  for (bool is_first = true;; is_first = false) {
    ClassEscape escape;
    if (cursor.done()) cursor.fail("a class is not closed");
    if (!is_first && cursor.skip("]")) break;
    const std::size_t start = cursor.at;
    if (cursor.skip("&&")) {
      terms.emplace_back();
    } else if (take_posix(cursor, terms.back())) {
    } else if (cursor.skip("[")) {
      terms.back().atoms.push_back(translate_class(cursor));
    } else if (cursor.skip("\\") && take_class_escape(cursor, escape)) {
      add(terms.back(), escape);
    } else {
      cursor.at = start;
      take_range(cursor, terms.back());
    }
  }
  if (std::any_of(terms.begin(), terms.end(), [](const Union& term) { return term.empty(); }))
    cursor.fail("a class is empty");
  if (terms.size() == 1 && terms[0].atoms.empty()) return (is_negated ? "[^" : "[") + terms[0].items + "]";
  std::string all;
  for (std::size_t i = 1; i < terms.size(); ++i) all += "(?=" + terms[i].atom() + ")";
  all += terms[0].atom();
  return is_negated ? "(?:(?!" + all + ")(?s:.))" : "(?:" + all + ")";
}

}  // namespace lathe::text
