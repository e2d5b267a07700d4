#include "models/text/tokenizer/added/added_tokens.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/text/tokenizer/unicode/characters.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

/// Bytes of all added tokens of a file. Each byte may be a node of a matcher, which takes some 60 bytes of memory.
constexpr std::size_t most_bytes = std::size_t{1} << 24;

AddedToken read_token(const JsonNode& place) {
  const Fields fields(place, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  fields.get("id").count();
  AddedToken token;
  token.content = fields.get("content").string();
  token.single_word = fields.get("single_word").boolean();
  token.lstrip = fields.get("lstrip").boolean();
  token.rstrip = fields.get("rstrip").boolean();
  token.normalized = fields.get("normalized").boolean();
  token.special = fields.get("special").boolean();
  return token;
}

}  // namespace

AddedTokens::AddedTokens(const JsonNode& place, const TokenTable& model, const Normalizer* normalizer) {
  MatchMemory memory;
  auto next = static_cast<TokenId>(model.size());
  std::size_t bytes = 0;
  for (const JsonNode& item : place.items()) {
    AddedToken token = read_token(item);
    if (token.content.empty()) continue;
    if (const AddedToken* same = find(token.content)) {
      token.id = same->id;
    } else {
      const auto id = model.find(token.content);
      token.id = id ? *id : next++;
    }
    ids_.set(token.content, token.id);
    if (token.special) special_.set(token.content, token.id);
    std::string text = token.content;
    if (token.normalized && normalizer) {
      memory.begin(text.size());
      text = normalizer->apply(AlignedText(text), memory).text();
    }
    bytes += text.size();
    if (bytes > most_bytes)
      item.fail(fmt::format("the added tokens up to this one have more than {} bytes", most_bytes),
                "tokenizer_limit");
    decoded_[token.id] = std::move(text);
    tokens_[token.id] = std::move(token);
  }
  // If two tokens normalize to the same text, the lower id wins. Tokens that normalize to empty text are never found.
  for (const auto& [id, token] : tokens_)
    if (!decoded_[id].empty()) (token.normalized ? normalized_ : original_).add(decoded_[id], id);
  original_.build();
  normalized_.build();
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto id = ids_.find(content);
  return id ? &tokens_.at(*id) : nullptr;
}

bool AddedTokens::stands_alone(std::string_view text, const TextMatcher::Match& match) {
  return (match.begin == 0 || !is_word(character_before(text, match.begin).code)) &&
         (match.end == text.size() || !is_word(character_at(text, match.end).code));
}

std::vector<Word> AddedTokens::split(std::string_view text, const TextMatcher& matcher) const {
  std::vector<Word> words;
  const auto push = [&](std::size_t begin, std::size_t end, TokenId id) {
    if (begin < end) words.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end), id});
  };
  std::size_t done = 0;
  for (const TextMatcher::Match& match : matcher.find(text)) {
    const AddedToken& token = tokens_.at(match.value);
    if (token.single_word && !stands_alone(text, match)) continue;
    std::size_t begin = match.begin, end = match.end;
    if (token.lstrip) {
      while (begin > done && is_space(character_before(text, begin).code))
        begin -= character_before(text, begin).size;
      begin = std::max(begin, done);
    }
    if (token.rstrip)
      while (end < text.size() && is_space(character_at(text, end).code)) end += character_size(text[end]);
    push(done, begin, -1);
    push(begin, end, match.value);
    done = end;
  }
  push(done, text.size(), -1);
  return words;
}

}  // namespace lathe::text
