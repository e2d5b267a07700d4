#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::text {

/// The code points of UTF-8 text; a byte that is not part of valid UTF-8 becomes U+FFFD.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view characters);

/// Characters as token ids, in the order of their code points. Id 0 stands for every character that is not known, and
/// reads back as U+FFFD.
class Vocabulary {
 public:
  static constexpr std::int64_t unknown = 0;

  /// The characters of `text`; where they are more than `limit`, the most frequent ones (the smaller code point first
  /// among equals).
  static Vocabulary of(std::string_view text, std::size_t limit = 4096);
  /// The vocabulary with these characters, as characters() gave them: what a checkpoint keeps.
  static Vocabulary from_characters(std::string_view characters);

  /// The number of ids, that of unknown characters included.
  std::int64_t size() const { return static_cast<std::int64_t>(characters_.size()) + 1; }
  std::string characters() const { return encode_utf8(characters_); }

  std::vector<std::int64_t> encode(std::string_view text) const;
  std::string decode(const std::vector<std::int64_t>& ids) const;

 private:
  explicit Vocabulary(std::u32string characters);
  std::u32string characters_;  // of ids 1 ..
  std::map<char32_t, std::int64_t> ids_;
};

}  // namespace lathe::text
