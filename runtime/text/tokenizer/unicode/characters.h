#pragma once

namespace lathe::text {

/// Properties of characters as tokenizers sees them. Unicode's tables are those of utf8proc; where tokenizers
/// takes older ones (older_unicode.h), so does Lathe.

/// White_Space of Unicode.
bool is_space(char32_t code);
/// \w of Unicode's regular expressions: letters, marks, digits, connectors, joiners.
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
/// The blocks of Han characters that BERT takes apart.
bool is_bert_han(char32_t code);
/// The simple mapping; U+0130 alone becomes two characters, of which this is the first and U+0307 the second.
char32_t to_lower(char32_t code);

}  // namespace lathe::text
