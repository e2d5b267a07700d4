#pragma once

namespace lathe::text {

/// Character properties as in tokenizers. Tables are those of utf8proc, except where tokenizers uses older ones
/// (older_unicode.h).

/// Unicode's White_Space.
bool is_space(char32_t code);
/// \w in Unicode regular expressions: letters, marks, digits, connectors, joiners.
bool is_word(char32_t code);
/// Categories N*.
bool is_numeric(char32_t code);
/// Categories P*, and ASCII's symbols.
bool is_punctuation(char32_t code);
/// Categories Cc, Cf and Co.
bool is_control(char32_t code);
/// Category Mn.
bool is_nonspacing_mark(char32_t code);
/// Categories M*.
bool is_mark(char32_t code);
/// The blocks of Han characters that BERT isolates.
bool is_bert_han(char32_t code);
/// Returns the simple case mapping. Only U+0130 maps to two characters: this returns the first; U+0307 is the second.
char32_t to_lower(char32_t code);

}  // namespace lathe::text
