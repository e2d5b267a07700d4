#include "models/text/tokenizer/normalize/charsmap.h"

#include <fmt/core.h>
#include <utf8proc.h>

#include <cstdint>

#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

constexpr std::string_view charsmap_label = "tokenizer_charsmap";

std::string decode_base64(const JsonNode& place) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;  // number of pending bits
  std::string_view text = place.string();
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (digit < 0) place.fail("is not base64", charsmap_label);
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8)));
  }
  return bytes;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Fields of a double-array unit:
bool has_leaf(std::uint32_t unit) { return unit >> 8 & 1; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FF; }
std::size_t offset_of(std::uint32_t unit) { return static_cast<std::size_t>(unit >> 10) << ((unit & 0x200) >> 6); }

/// Collects the characters of the result. The last one is delayed, because its span may grow by characters that are
/// removed after it.
class MappedText {
 public:
  explicit MappedText(const AlignedText& source)
      : source_(source),
        out_(source.origin(), source.text().size() + 16),
        changes_(out_, source, 0, source.text().size()) {}

  /// Appends `code` unchanged.
  void keep(char32_t code) { put({code, 0}); }

  void replace(std::string_view old_text, std::string_view new_text) {
    const auto old_count = static_cast<int>(count_characters(old_text));
    const auto new_count = static_cast<int>(count_characters(new_text));
    int index = 0;
    for (std::size_t at = 0; at < new_text.size();) {
      const Character next = character_at(new_text, at);
      put({next.code, ++index > old_count ? 1 : 0});
      at += next.size;
    }
    if (last_) last_->taken -= std::max(old_count - new_count, 0);
  }

  std::size_t size() const { return out_.size(); }
  AlignedText finish() {
    if (last_) changes_.put(*last_);
    return out_.finish();
  }

 private:
  void put(Change change) {
    if (last_) changes_.put(*last_);
    last_ = change;
  }

  const AlignedText& source_;
  AlignedWriter out_;
  ChangeWriter changes_;
  std::optional<Change> last_;
};

/// Returns the end of the grapheme cluster that starts at `at`.
std::size_t cluster_end(std::string_view text, std::size_t at) {
  Character last = character_at(text, at);
  std::int32_t state = 0;
  for (at += last.size; at < text.size();) {
    const Character next = character_at(text, at);
    if (last.code < 0x80 && next.code < 0x80) return last.code == '\r' && next.code == '\n' ? at + 1 : at;
    if (utf8proc_grapheme_break_stateful(static_cast<std::int32_t>(last.code), static_cast<std::int32_t>(next.code),
                                         &state))
      return at;
    last = next;
    at += next.size;
  }
  return at;
}

}  // namespace

CharsMap::CharsMap(const JsonNode& place) {
  const std::string bytes = decode_base64(place);
  if (bytes.size() < 4) place.fail("is too short for a character map", charsmap_label);
  const std::size_t size = little_endian(bytes, 0);
  if (size % 4 != 0 || size > bytes.size() - 4)
    place.fail(fmt::format("has {} bytes, and a trie of {}", bytes.size(), size), charsmap_label);
  for (std::size_t at = 4; at < 4 + size; at += 4) trie_.push_back(little_endian(bytes, at));
  replacements_ = bytes.substr(4 + size);
  if (find_invalid_utf8(replacements_) != std::string_view::npos)
    place.fail("holds text that is not UTF-8", charsmap_label);
  if (trie_.empty()) place.fail("has an empty trie", charsmap_label);
  for (std::size_t code = 1; code < ascii_.size(); ++code) {
    const char text = static_cast<char>(code);
    ascii_[code] = find_in_trie({&text, 1});
  }
}

std::optional<std::string_view> CharsMap::find(std::string_view text) const {
  if (text.size() == 1) return ascii_[static_cast<unsigned char>(text[0])];
  return find_in_trie(text);
}

std::optional<std::string_view> CharsMap::find_in_trie(std::string_view text) const {
  std::size_t node = offset_of(trie_[0]);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (byte == 0 || node >= trie_.size() || label_of(trie_[node]) != byte) return std::nullopt;
    const std::uint32_t unit = trie_[node];
    node ^= offset_of(unit);
    if (node >= trie_.size()) return std::nullopt;
    if (!has_leaf(unit)) continue;
    const std::size_t begin = value_of(trie_[node]);
    if (begin >= replacements_.size() || !starts_character(replacements_[begin])) return std::nullopt;
    const std::size_t end = replacements_.find('\0', begin);
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return std::nullopt;
}

AlignedText CharsMap::apply(AlignedText source, const TextBudget& budget, std::string_view place) const {
  const std::string_view text = source.text();
  MappedText mapped(source);
  bool is_changed = false;
  for (std::size_t at = 0; at < text.size();) {
    if (mapped.size() > budget.writable()) budget.fail(place);
    const std::size_t end = cluster_end(text, at);
    const std::string_view cluster = text.substr(at, end - at);
    if (const auto found = cluster.size() < 6 ? find(cluster) : std::nullopt) {
      mapped.replace(cluster, *found);
      is_changed = true;
      at = end;
      continue;
    }
    while (at < end) {
      const Character next = character_at(text, at);
      const std::string_view part = text.substr(at, next.size);
      if (const auto found = find(part)) {
        mapped.replace(part, *found);
        is_changed = true;
      } else {
        mapped.keep(next.code);
      }
      at += next.size;
    }
  }
  if (!is_changed) return source;
  return mapped.finish();
}

}  // namespace lathe::text
