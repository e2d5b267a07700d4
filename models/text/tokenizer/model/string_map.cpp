#include "models/text/tokenizer/model/string_map.h"

#include <cstring>

#include "ir/support/hash.h"

namespace lathe::text {

std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  const auto load = [&](std::size_t at, std::size_t size) {
    std::uint64_t word = 0;
    if (size > 0) std::memcpy(&word, bytes.data() + at, size);
    return word;
  };
  std::size_t at = 0;
  for (; at + 8 < bytes.size(); at += 8) hash = mix_hash(hash, load(at, 8));
  return mix_hash(hash, load(at, bytes.size() - at));
}

void StringMap::set(std::string_view key, TokenId id) {
  if (2 * (entries_.size() + 1) > slots_.size()) grow();
  const std::uint64_t hash = hash_bytes(key);
  std::uint32_t& slot = slots_[position(key, hash)];
  if (slot != 0) {
    entries_[slot - 1].id = id;
    return;
  }
  entries_.push_back({hash, bytes_.size(), key.size(), id});
  bytes_.append(key);
  slot = static_cast<std::uint32_t>(entries_.size());
}

std::optional<TokenId> StringMap::find(std::string_view key) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t slot = slots_[position(key, hash_bytes(key))];
  return slot == 0 ? std::nullopt : std::optional(entries_[slot - 1].id);
}

std::size_t StringMap::position(std::string_view key, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    if (slots_[at] == 0) return at;
    const Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && std::string_view(bytes_).substr(entry.begin, entry.size) == key) return at;
  }
}

void StringMap::grow() {
  slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = entries_[i].hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace lathe::text
