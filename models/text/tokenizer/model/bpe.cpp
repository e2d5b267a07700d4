#include "models/text/tokenizer/model/bpe.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/text/tokenizer/split/byte_alphabet.h"
#include "models/text/tokenizer/unicode/utf8.h"
#include "runtime/files/file_io.h"

namespace lathe::text {

namespace {

/// Longer words, in bytes, are split into segments before merging.
constexpr std::size_t long_word = 64;

void append(std::vector<ModelToken>& out, std::span<const ModelToken> tokens, std::uint32_t shift) {
  for (const ModelToken& token : tokens) out.push_back({token.id, shift + token.begin, shift + token.end});
}

void append(std::vector<ModelToken>& out, std::span<const Symbol> symbols, std::uint32_t at) {
  for (const Symbol& symbol : symbols) {
    out.push_back({symbol.id, at, at + symbol.size});
    at += symbol.size;
  }
}

/// Clamps offsets to the word. With byte_fallback, the bytes of a prefix or suffix may be separate tokens, which
/// shifts tokens beyond the word's end; they are assigned to its last byte.
void clamp_to(std::string_view word, std::span<ModelToken> tokens) {
  const auto size = static_cast<std::uint32_t>(word.size());
  for (ModelToken& token : tokens) {
    token.begin = std::min(token.begin, size - 1);
    token.end = std::min(token.end, size);
  }
}

}  // namespace

/// Splits a word where no merge can cross, so that each segment is merged separately and can be found in the cache.
class Bpe::SegmentMerger {
 public:
  SegmentMerger(const Bpe& model, std::string_view word, WordCache& cache, std::vector<ModelToken>& out)
      : model_(model), word_(word), cache_(cache), out_(out) {}

  /// Adds a symbol that starts at byte `at` of the word.
  void put(Symbol symbol, std::size_t at) {
    if (!symbols_.empty() &&
        !model_.joints_.find(static_cast<std::uint32_t>(symbols_.back().id), static_cast<std::uint32_t>(symbol.id)))
      merge(at);
    symbols_.push_back(symbol);
  }

  void finish() { merge(word_.size()); }

 private:
  void merge(std::size_t end) {
    const std::string_view segment = word_.substr(begin_, end - begin_);
    const std::size_t first = out_.size();
    std::uint32_t size = 0;
    for (const Symbol& symbol : symbols_) size += symbol.size;
    if (const auto found = cache_.find(segment)) {
      append(out_, *found, 0);
    } else {
      model_.merges_.apply(symbols_);
      append(out_, symbols_, 0);
      cache_.insert(segment, std::span(out_).subspan(first));
    }
    for (std::size_t i = first; i < out_.size(); ++i) {
      out_[i].begin += shift_;
      out_[i].end += shift_;
    }
    symbols_.clear();
    begin_ = end;
    shift_ += size;
  }

  const Bpe& model_;
  std::string_view word_;
  WordCache& cache_;
  std::vector<ModelToken>& out_;
  std::vector<Symbol> symbols_;
  std::size_t begin_ = 0;    ///< start of the segment in the word
  std::uint32_t shift_ = 0;  ///< total size of all symbols before the segment
};

/// Calls put(symbol, start) for the tokens of single characters or their bytes. Unknown characters become one token
/// each, or one token per run. Characters without any token do not contribute to offsets.
template <class Put>
void Bpe::for_each_symbol(std::string_view word, bool is_bytes, const Put& put) const {
  if (is_bytes) {
    for (std::size_t at = 0; at < word.size(); ++at) put(Symbol{bytes_[static_cast<unsigned char>(word[at])], 1}, at);
    return;
  }
  const bool has_affixes = !affixes_.prefix.empty() || !affixes_.suffix.empty();
  std::optional<Symbol> unknown;  // delayed, because adjacent ones may be fused
  std::size_t unknown_at = 0;
  const auto flush = [&] {
    if (unknown) put(*unknown, unknown_at);
    unknown.reset();
  };
  std::string affixed;
  for (std::size_t at = 0, end = 0; at < word.size(); at = end) {
    const Character next = character_at(word, at);
    end = at + next.size;
    std::string_view text = word.substr(at, next.size);
    if (has_affixes) {
      affixed = at > 0 ? affixes_.prefix : "";
      affixed.append(text).append(end == word.size() ? affixes_.suffix : "");
      text = affixed;
    }
    const TokenId id = has_affixes ? tokens().find(text).value_or(-1) : characters_.find(next.code);
    if (id >= 0) {
      flush();
      put(Symbol{id, next.size}, at);
      continue;
    }
    const auto has_fallback = [&](char byte) { return fallback_[static_cast<unsigned char>(byte)] >= 0; };
    if (falls_back_to_bytes_ && std::all_of(text.begin(), text.end(), has_fallback)) {
      for (std::size_t i = 0; i < text.size(); ++i)
        put(Symbol{fallback_[static_cast<unsigned char>(text[i])], 1}, at + i);
    } else if (!unknown_.empty()) {
      if (unknown && fuses_unknown_) {
        unknown->size += next.size;
      } else {
        flush();
        unknown = Symbol{unknown_token(unknown_), next.size};
        unknown_at = at;
      }
    }
  }
  flush();
}

bool Bpe::cuts_words() const {
  return affixes_.prefix.empty() && affixes_.suffix.empty() && (has_all_fallbacks_ || !falls_back_to_bytes_);
}

std::optional<TokenId> Bpe::whole_word(std::string_view word, bool is_bytes) const {
  return is_bytes ? words_of_bytes_.find(word) : tokens().find(word);
}

void Bpe::tokenize(std::string_view word, bool is_bytes, WordCache& cache, std::vector<ModelToken>& out) const {
  if (ignores_merges_) {
    if (const auto id = whole_word(word, is_bytes)) {
      out.push_back({*id, 0, static_cast<std::uint32_t>(word.size())});
      return;
    }
  }
  if (const auto found = cache.find(word)) return append(out, *found, 0);
  const std::size_t first = out.size();
  if (word.size() > long_word && cuts_words()) {
    SegmentMerger merger(*this, word, cache, out);
    for_each_symbol(word, is_bytes, [&](Symbol symbol, std::size_t at) { merger.put(symbol, at); });
    merger.finish();
  } else {
    std::vector<Symbol> symbols;
    symbols.reserve(word.size());
    for_each_symbol(word, is_bytes, [&](Symbol symbol, std::size_t) { symbols.push_back(symbol); });
    merges_.apply(symbols);
    append(out, symbols, 0);
    if (!cuts_words()) clamp_to(word, std::span(out).subspan(first));
  }
  cache.insert(word, std::span(out).subspan(first));
}

CharacterIds::CharacterIds(const TokenTable& tokens) {
  for (TokenId id = 0; id < tokens.end(); ++id) {
    const std::string_view text = tokens.has(id) ? tokens.text(id) : "";
    if (text.empty() || character_size(text[0]) != text.size()) continue;
    const char32_t code = character_at(text, 0).code;
    std::uint32_t& page = pages_[code / page_size];
    if (page == 0) {
      ids_.resize(ids_.size() + page_size, -1);
      page = static_cast<std::uint32_t>(ids_.size() / page_size);
    }
    ids_[(page - 1) * page_size + code % page_size] = id;
  }
}

}  // namespace lathe::text
