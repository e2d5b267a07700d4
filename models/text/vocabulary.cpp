#include "models/text/vocabulary.h"

#include <algorithm>

namespace lathe::text {

namespace {

constexpr char32_t replacement_character = 0xfffd;

/// Length of the sequence that a leading byte starts; 0 for an invalid one.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

bool valid(char32_t c, std::size_t length) {
  const char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  return c >= least[length] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string characters;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = sequence_length(lead);
    char32_t c = length == 1 ? lead : lead & (0xffu >> (length + 1));
    bool good = length != 0 && i + length <= text.size();
    for (std::size_t k = 1; good && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      good = (next & 0xc0) == 0x80;
      c = (c << 6) | (next & 0x3fu);
    }
    good = good && valid(c, length);
    characters.push_back(good ? c : replacement_character);
    i += good ? length : 1;
  }
  return characters;
}

std::string encode_utf8(std::u32string_view characters) {
  std::string text;
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  for (const char32_t c : characters) {
    if (c < 0x80) {
      put(c);
      continue;
    }
    const int continuations = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    const char32_t lead = continuations == 1 ? 0xc0 : continuations == 2 ? 0xe0 : 0xf0;
    put(lead | (c >> (6 * continuations)));
    for (int k = continuations - 1; k >= 0; --k) put(0x80 | ((c >> (6 * k)) & 0x3f));
  }
  return text;
}

Vocabulary::Vocabulary(std::u32string characters) : characters_(std::move(characters)) {
  std::sort(characters_.begin(), characters_.end());
  characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
  for (const char32_t c : characters_) ids_.emplace(c, static_cast<std::int64_t>(ids_.size()) + 1);
}

Vocabulary Vocabulary::of(std::string_view text, std::size_t limit) {
  std::map<char32_t, std::size_t> counts;
  for (const char32_t c : decode_utf8(text))
    if (c != replacement_character) ++counts[c];
  std::vector<std::pair<char32_t, std::size_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::u32string kept;
  for (std::size_t i = 0; i < std::min(limit, order.size()); ++i) kept.push_back(order[i].first);
  return Vocabulary(std::move(kept));
}

Vocabulary Vocabulary::from_characters(std::string_view characters) { return Vocabulary(decode_utf8(characters)); }

std::vector<std::int64_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for (const char32_t c : decode_utf8(text)) {
    const auto at = ids_.find(c);
    ids.push_back(at == ids_.end() ? unknown : at->second);
  }
  return ids;
}

std::string Vocabulary::decode(const std::vector<std::int64_t>& ids) const {
  std::u32string characters;
  for (const std::int64_t id : ids)
    characters.push_back(id >= 1 && id < size() ? characters_[id - 1] : replacement_character);
  return encode_utf8(characters);
}

}  // namespace lathe::text
