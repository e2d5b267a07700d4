#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/encoding.h"

namespace lathe::text {

/// Returns a 64-bit hash with well-distributed bits.
std::uint64_t hash_bytes(std::string_view bytes);

/// A hash map from strings to ids, with open addressing. All strings share one buffer.
class StringMap {
 public:
  /// Inserts an id or replaces it.
  void set(std::string_view key, TokenId id);
  std::optional<TokenId> find(std::string_view key) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::size_t begin = 0, size = 0;
    TokenId id = 0;
  };
  /// Returns the slot of the key, or the vacant slot at which to insert it.
  std::size_t position(std::string_view key, std::uint64_t hash) const;
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  ///< 1 + index of the entry; 0: vacant
};

}  // namespace lathe::text
