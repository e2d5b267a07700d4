#pragma once

namespace lathe::text {

/// tokenizers uses tables of Unicode 8 and 9 for punctuation, format characters, marks and normal forms, and models
/// were trained with these. The functions return whether a code point's property has changed since then, up to
/// Unicode 15.
bool older_not_punctuation(char32_t code);
bool older_punctuation(char32_t code);
bool older_not_format(char32_t code);
bool older_not_nonspacing_mark(char32_t code);
bool older_not_mark(char32_t code);
/// Combining class 0 in the older version.
bool older_without_class(char32_t code);
/// Neither decomposed nor composed in the older version.
bool older_whole(char32_t code);

}  // namespace lathe::text
