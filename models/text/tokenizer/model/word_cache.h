#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/encoding.h"

namespace lathe::text {

/// A token of a word and its byte range [begin, end).
struct ModelToken {
  TokenId id = 0;
  std::uint32_t begin = 0, end = 0;
};

/// Cache of the tokens of words, for one thread and one model.
class WordCache {
 public:
  static constexpr std::size_t longest_word = 255;  ///< bytes

  std::optional<std::span<const ModelToken>> find(std::string_view word) const;
  /// Inserts a word unless it is too long. Clears the cache first if it is full.
  void insert(std::string_view word, std::span<const ModelToken> tokens);

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t word = 0, tokens = 0;  ///< start positions
    std::uint16_t size = 0;              ///< size of the word in bytes; 0: vacant
    std::uint16_t count = 0;
  };
  std::size_t position(std::string_view word, std::uint64_t hash) const;
  void grow();

  std::vector<Slot> slots_;
  std::string words_;
  std::vector<ModelToken> tokens_;
  std::size_t size_ = 0;
};

}  // namespace lathe::text
