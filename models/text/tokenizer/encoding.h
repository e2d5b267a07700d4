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

/// The encoding of a text or a pair of texts. Each list has one entry per token.
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<std::int32_t> type_ids;  ///< 0, or 1 for the second text, unless the post-processor sets them
  std::vector<TextRange> offsets;      ///< range in the token's text; 0, 0 for special tokens and padding
  std::vector<std::int32_t> words;     ///< index of the word in the token's text; -1 for special tokens and padding
  std::vector<std::uint8_t> special_mask;    ///< 1: padding or a special token that the post-processor added
  std::vector<std::uint8_t> attention_mask;  ///< 0: padding
  /// The tokens that truncation removed, in parts of at most the same length, if a stride was requested.
  std::vector<Encoding> overflow;

  std::size_t size() const { return ids.size(); }
};

enum class Side { left, right };

/// Truncates a text or a pair to a number of tokens, including special tokens.
struct Truncation {
  enum class Strategy { longest_first, only_first, only_second };

  std::size_t max_length = 512;
  Strategy strategy = Strategy::longest_first;
  Side side = Side::right;  ///< the side on which tokens are removed
  std::size_t stride = 0;   ///< number of tokens that adjacent parts of the overflow share
};

/// Pads encodings to one length.
struct Padding {
  std::optional<std::size_t> length = {};  ///< default: the longest encoding of the batch
  std::optional<std::size_t> multiple_of = {};
  Side side = Side::right;  ///< the side on which padding is added
  TokenId id = 0;
  std::int32_t type_id = 0;
};

/// Upper bound of the padded length.
inline constexpr std::size_t longest_padding = std::size_t{1} << 24;

/// Pads all encodings and their overflow to the same length. Throws UserError [tokenizer_limit] for a length above
/// longest_padding.
void pad(std::span<Encoding> encodings, const Padding& padding);

}  // namespace lathe
