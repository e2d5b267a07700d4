#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/text/tokenizer/model/bpe.h"
#include "models/text/tokenizer/split/byte_alphabet.h"
#include "models/text/tokenizer/unicode/utf8.h"
#include "runtime/files/file_io.h"

namespace lathe::text {

namespace {

constexpr std::string_view bpe_label = "tokenizer_merge";

void refuse_dropout(const Fields& fields) {
  const auto dropout = fields.find("dropout");
  if (dropout && dropout->number() != 0)
    dropout->fail("merges that drop out make random tokens", "tokenizer_dropout", "set it to null");
}

}  // namespace

Bpe::Bpe(const Fields& fields)
    : Model(TokenTable(fields.get("vocab"))),
      affixes_{fields.string_or("continuing_subword_prefix", ""), fields.string_or("end_of_word_suffix", "")},
      unknown_(fields.string_or("unk_token", "")),
      fuses_unknown_(fields.boolean_or("fuse_unk", false)),
      falls_back_to_bytes_(fields.boolean_or("byte_fallback", false)),
      ignores_merges_(fields.boolean_or("ignore_merges", false)),
      characters_(tokens()) {
  refuse_dropout(fields);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    fallback_[byte] = tokens().find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
    bytes_[byte] = characters_.find(byte_character(static_cast<std::uint8_t>(byte)));
  }
  const auto all_found = [](const auto& ids) {
    return std::all_of(ids.begin(), ids.end(), [](TokenId id) { return id >= 0; });
  };
  has_all_fallbacks_ = all_found(fallback_);
  takes_bytes_ = all_found(bytes_) && affixes_.prefix.empty() && affixes_.suffix.empty();
  if (takes_bytes_ && ignores_merges_)
    for (TokenId id = 0; id < tokens().end(); ++id)
      if (tokens().has(id))
        if (const auto bytes = to_bytes(tokens().text(id))) words_of_bytes_.set(*bytes, id);
  read_merges(fields.get("merges"));
  find_joints();
}

void Bpe::read_merges(const JsonNode& place) {
  if (!place.is_array()) place.fail("is not a list", bpe_label);
  const auto& all = place.value();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& pair = all[i];
    if (pair.is_string()) {  // the old format; its first line may be the header of a merges.txt
      const std::string_view text = pair.get_ref<const std::string&>();
      const std::size_t space = text.find(' ');
      if (text.starts_with("#version")) continue;
      if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
        place.item(i).fail(fmt::format("{} is not two tokens", quote(text)), bpe_label);
      set_merge(place, i, text.substr(0, space), text.substr(space + 1));
    } else if (pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string()) {
      set_merge(place, i, pair[0].get_ref<const std::string&>(), pair[1].get_ref<const std::string&>());
    } else {
      place.item(i).fail("is not two tokens", bpe_label);
    }
  }
}

void Bpe::set_merge(const JsonNode& place, std::size_t index, std::string_view left, std::string_view right) {
  const auto find = [&](std::string_view text) {
    const auto id = tokens().find(text);
    if (!id) place.item(index).fail(fmt::format("{} is not in the vocabulary", quote(text)), bpe_label);
    return *id;
  };
  const TokenId left_id = find(left), right_id = find(right);
  if (right.size() < affixes_.prefix.size())
    place.item(index).fail(fmt::format("{} is shorter than the prefix", quote(right)), bpe_label);
  const TokenId result = find(std::string(left).append(right.substr(affixes_.prefix.size())));
  merges_.set(left_id, right_id, {static_cast<std::uint32_t>(index), result});
  merged_.push_back({left_id, right_id, result});
}

/// Finds the pairs of symbols that a merge can join. Unknown and byte tokens can also be merged, so a token can have
/// several first and last symbols.
void Bpe::find_joints() {
  if (!cuts_words()) return;
  using Ids = std::vector<TokenId>;
  std::vector<Ids> firsts(static_cast<std::size_t>(tokens().end())), lasts(firsts.size());
  const auto start = [&](TokenId id) { firsts[id] = lasts[id] = {id}; };
  for (TokenId id = 0; id < tokens().end(); ++id) {
    const std::string_view text = tokens().has(id) ? tokens().text(id) : "";
    if (!text.empty() && character_size(text[0]) == text.size()) start(id);
  }
  for (const TokenId id : fallback_)
    if (id >= 0) start(id);
  if (const auto id = tokens().find(unknown_)) start(*id);
  const auto include = [](Ids& to, const Ids& from) {
    bool grows = false;
    for (const TokenId id : Ids(from))
      if (std::find(to.begin(), to.end(), id) == to.end()) {
        to.push_back(id);
        grows = true;
      }
    return grows;
  };
  int passes = 0;
  for (bool grows = true; grows; ++passes) {
    grows = false;
    // Merges usually follow those that produce their operands. If not, sort by the size of the result.
    if (passes == 2)
      std::stable_sort(merged_.begin(), merged_.end(), [&](const auto& a, const auto& b) {
        return tokens().text(a[2]).size() < tokens().text(b[2]).size();
      });
    for (const auto& [left, right, result] : merged_) {
      const auto at = static_cast<std::size_t>(result);
      grows |= include(firsts[at], firsts[left]);
      grows |= include(lasts[at], lasts[right]);
    }
  }
  for (const auto& [left, right, result] : merged_)
    for (const TokenId last : lasts[left])
      for (const TokenId first : firsts[right])
        joints_[PairMap<char>::key(static_cast<std::uint32_t>(last), static_cast<std::uint32_t>(first))] = 1;
  merged_ = {};
}

std::unique_ptr<const Model> read_bpe(const JsonNode& place) {
  return std::make_unique<Bpe>(
      Fields(place, {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                     "byte_fallback", "ignore_merges", "vocab", "merges"}));
}

}  // namespace lathe::text
