#pragma once

namespace lathe::text {

/// tokenizers takes punctuation, format characters, marks and normal forms from tables of Unicode 8 and 9, and
/// models have learned with these. Code points whose property has changed since then, up to Unicode 15.
bool older_not_punctuation(char32_t code);
bool older_punctuation(char32_t code);
bool older_not_format(char32_t code);
bool older_not_nonspacing_mark(char32_t code);
bool older_not_mark(char32_t code);
/// Combining class 0.
bool older_without_class(char32_t code);
/// Neither decomposes nor is composed.
bool older_whole(char32_t code);

}  // namespace lathe::text
