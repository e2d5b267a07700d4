#include "runtime/library/c_names.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"

namespace lathe {

namespace {

constexpr std::string_view keywords[] = {
    "alignas",      "alignof",       "and",         "and_eq",   "asm",       "auto",
    "bitand",       "bitor",         "bool",        "break",    "case",      "catch",
    "char",         "class",         "compl",       "concept",  "const",     "consteval",
    "constexpr",    "constinit",     "const_cast",  "continue", "co_await",  "co_return",
    "co_yield",     "decltype",      "default",     "delete",   "do",        "double",
    "dynamic_cast", "else",          "enum",        "explicit", "export",    "extern",
    "false",        "float",         "for",         "friend",   "goto",      "if",
    "inline",       "int",           "long",        "mutable",  "namespace", "new",
    "noexcept",     "not",           "not_eq",      "nullptr",  "operator",  "or",
    "or_eq",        "private",       "protected",   "public",   "register",  "reinterpret_cast",
    "requires",     "restrict",      "return",      "short",    "signed",    "sizeof",
    "static",       "static_assert", "static_cast", "struct",   "switch",    "template",
    "this",         "thread_local",  "throw",       "true",     "try",       "typedef",
    "typeid",       "typename",      "union",       "unsigned", "using",     "virtual",
    "void",         "volatile",      "wchar_t",     "while",    "xor",       "xor_eq",
    "char8_t",      "char16_t",      "char32_t",    "typeof"};

/// Macros without parameters of the headers of C, and of GCC and Clang: a program may include these headers first.
constexpr std::string_view macros[] = {
    "NULL",      "EOF",  "BUFSIZ",   "errno",    "stdin",    "stdout",     "stderr",        "I",          "complex",
    "imaginary", "NAN",  "INFINITY", "HUGE_VAL", "M_PI",     "M_E",        "RAND_MAX",      "CHAR_BIT",   "linux",
    "unix",      "i386", "SEEK_SET", "SEEK_CUR", "SEEK_END", "BIG_ENDIAN", "LITTLE_ENDIAN", "BYTE_ORDER", "TRUE",
    "FALSE",     "EDOM", "ERANGE",   "EILSEQ",   "EINVAL",   "ENOMEM"};

/// Returns whether a header of C may define a macro of this name, such as INT64_MAX.
bool may_be_macro(std::string_view text) {
  const bool is_limit = (text.ends_with("_MAX") || text.ends_with("_MIN")) && text[0] >= 'A' && text[0] <= 'Z';
  return is_limit || std::ranges::find(macros, text) != std::end(macros);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool is_c_identifier(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); }) &&
         std::ranges::find(keywords, text) == std::end(keywords);
}

std::string CNames::identifier(std::string_view name) {
  std::string text;
  for (const char c : name) text += is_letter(c) || is_digit(c) ? c : '_';
  if (text.empty() || is_digit(text[0])) text = "_" + text;
  // Names with an underscore and a capital, or with two underscores, belong to the compiler.
  while (text.starts_with('_')) text.erase(0, 1);
  if (text.empty() || is_digit(text[0])) text = "n" + text;
  for (std::size_t at = text.find("__"); at != std::string::npos; at = text.find("__")) text.erase(at, 1);
  if (!is_c_identifier(text) || may_be_macro(text)) text += "_";
  std::string unique = text;
  for (int number = 2; !given_.insert(unique).second; ++number) unique = fmt::format("{}_{}", text, number);
  return unique;
}

std::string_view c_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return "double";
    case DType::f32:
    case DType::c64: return "float";
    case DType::bf16:
    case DType::f16: return "uint16_t";
    case DType::i64: return "int64_t";
    case DType::i32: return "int32_t";
    case DType::boolean:
    case DType::u8: return "uint8_t";
    case DType::i8: return "int8_t";
  }
  throw InternalError("a dtype out of range");
}

std::string c_comment(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool ends_comment = c == '/' && line.ends_with('*'), starts_one = c == '*' && line.ends_with('/');
    if (ends_comment || starts_one) line += ' ';
    line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return line;
}

}  // namespace lathe
