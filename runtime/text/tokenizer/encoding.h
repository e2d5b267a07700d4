#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lathe {

using TokenId = std::int32_t;

/// Code points [begin, end) of a text.
struct TextRange {
  std::uint32_t begin = 0, end = 0;
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

/// What a text, or two, became: for each token an entry in every list.
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> type_ids;        ///< 0, or 1 for the second text; as the post-processor says
  std::vector<TextRange> offsets;            ///< in the token's text; 0, 0 for special tokens and padding
  std::vector<std::int32_t> words;           ///< the index of the word in the token's text; -1 as above
  std::vector<std::uint8_t> special_mask;    ///< 1: special tokens that the post-processor added, and padding
  std::vector<std::uint8_t> attention_mask;  ///< 0: padding
  /// What truncation cut off, in parts of the same length at most, if it was asked for a stride.
  std::vector<Encoding> overflow;

  std::size_t size() const { return ids.size(); }
};

enum class Side { left, right };

/// Cuts a text, or two, to a number of tokens, special tokens included.
struct Truncation {
  enum class Strategy { longest_first, only_first, only_second };

  std::size_t max_length = 512;
  Strategy strategy = Strategy::longest_first;
  Side side = Side::right;  ///< where tokens go
  std::size_t stride = 0;   ///< how many tokens parts of the overflow share
};

/// Fills encodings up to one length.
struct Padding {
  std::optional<std::size_t> length = {};  ///< nothing: that of the longest of the batch
  std::optional<std::size_t> multiple_of = {};
  Side side = Side::right;  ///< where padding goes
  TokenId id = 0;
  std::int32_t type_id = 0;
};

/// More tokens than any text is padded to.
inline constexpr std::size_t longest_padding = std::size_t{1} << 24;

/// Pads all encodings, and their overflow, to the same length. UserError [tokenizer_limit] for a length above
/// longest_padding.
void pad(std::span<Encoding> encodings, const Padding& padding);

}  // namespace lathe
