#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::text {

/// Returns the code points of UTF-8 text. A byte that is not part of valid UTF-8 becomes U+FFFD.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view characters);

/// Characters as token ids, ordered by code point. Id 0 is any unknown character, and decodes to U+FFFD.
class Vocabulary {
 public:
  static constexpr std::int64_t unknown = 0;

  /// Returns the vocabulary of the characters in `text`; if there are more than `limit`, of the most frequent ones,
  /// ties by smaller code point.
  static Vocabulary of(std::string_view text, std::size_t limit = 4096);
  /// Restores a vocabulary from the result of characters(), such as from a checkpoint.
  static Vocabulary from_characters(std::string_view characters);

  /// Number of ids, including that of unknown characters.
  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()) + 1; }
  std::string characters() const { return encode_utf8(characters_); }

  std::vector<std::int64_t> encode(std::string_view text) const;
  std::string decode(const std::vector<std::int64_t>& ids) const;

 private:
  explicit Vocabulary(std::u32string characters);
  std::u32string characters_;  // ids 1, 2, ..
  std::map<char32_t, std::int64_t> ids_;
};

}  // namespace lathe::text
