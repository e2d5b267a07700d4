#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/encoding.h"

namespace lathe::text {

/// A hash of bytes that spreads over all 64 bits.
std::uint64_t hash_bytes(std::string_view bytes);

/// A hash map from strings to ids, with open addressing and all strings in one place.
class StringMap {
 public:
  /// Puts an id in, also over another one.
  void set(std::string_view key, TokenId id);
  std::optional<TokenId> find(std::string_view key) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::size_t begin = 0, size = 0;
    TokenId id = 0;
  };
  /// The slot of the key, or the vacant one where it would be.
  std::size_t position(std::string_view key, std::uint64_t hash) const;
  void grow();

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  ///< 1 + index of an entry; 0: vacant
};

}  // namespace lathe::text
