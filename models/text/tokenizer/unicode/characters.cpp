#include "models/text/tokenizer/unicode/characters.h"

#include <utf8proc.h>

#include "models/text/tokenizer/unicode/older_unicode.h"

namespace lathe::text {

namespace {

utf8proc_category_t category(char32_t code) { return utf8proc_category(static_cast<utf8proc_int32_t>(code)); }

/// Returns whether a symbol is Alphabetic: letters in circles and squares.
bool is_enclosed_letter(char32_t code) {
  return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

}  // namespace

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  if (code == 0x85) return true;
  const utf8proc_category_t c = category(code);
  return c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL || c == UTF8PROC_CATEGORY_ZP;
}

bool is_word(char32_t code) {
  if (code < 0x80)
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9') ||
           code == '_';
  const utf8proc_category_t c = category(code);
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC || code == 0x200C ||
         code == 0x200D || is_enclosed_letter(code);
}

bool is_numeric(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const utf8proc_category_t c = category(code);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  const utf8proc_category_t c = category(code);
  if (c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO) return !older_not_punctuation(code);
  return older_punctuation(code);
}

bool is_control(char32_t code) {
  const utf8proc_category_t c = category(code);
  if (c == UTF8PROC_CATEGORY_CC || c == UTF8PROC_CATEGORY_CO) return true;
  return c == UTF8PROC_CATEGORY_CF && !older_not_format(code);
}

bool is_nonspacing_mark(char32_t code) {
  if (code < 0x300) return false;
  return (category(code) == UTF8PROC_CATEGORY_MN && !older_not_nonspacing_mark(code)) || code == 0x1734;
}

bool is_mark(char32_t code) {
  if (code < 0x300) return false;
  const utf8proc_category_t c = category(code);
  if (c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME) return !older_not_mark(code);
  return code == 0x1CF2 || code == 0x1CF3;
}

bool is_bert_han(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

char32_t to_lower(char32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 0x20 : code;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

}  // namespace lathe::text
