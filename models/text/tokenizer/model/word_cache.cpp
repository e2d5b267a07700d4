#include "models/text/tokenizer/model/word_cache.h"

#include "models/text/tokenizer/model/string_map.h"

namespace lathe::text {

namespace {

constexpr std::size_t least_slots = 1 << 10, most_slots = 1 << 17;

}  // namespace

std::optional<std::span<const ModelToken>> WordCache::find(std::string_view word) const {
  if (slots_.empty() || word.size() > longest_word) return std::nullopt;
  const Slot& slot = slots_[position(word, hash_bytes(word))];
  if (slot.size == 0) return std::nullopt;
  return std::span(tokens_).subspan(slot.tokens, slot.count);
}

void WordCache::insert(std::string_view word, std::span<const ModelToken> tokens) {
  if (word.empty() || word.size() > longest_word || tokens.size() > UINT16_MAX) return;
  if (2 * (size_ + 1) > slots_.size()) grow();
  const std::uint64_t hash = hash_bytes(word);
  Slot& slot = slots_[position(word, hash)];
  slot = {hash, static_cast<std::uint32_t>(words_.size()), static_cast<std::uint32_t>(tokens_.size()),
          static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(tokens.size())};
  words_.append(word);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  ++size_;
}

std::size_t WordCache::position(std::string_view word, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.size == 0 || (slot.hash == hash && std::string_view(words_).substr(slot.word, slot.size) == word))
      return at;
  }
}

void WordCache::grow() {
  if (slots_.size() == most_slots) {
    *this = WordCache();
    slots_.resize(least_slots);
    return;
  }
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(old.empty() ? least_slots : 2 * old.size(), Slot{});
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.size == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots_[at].size != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

}  // namespace lathe::text
