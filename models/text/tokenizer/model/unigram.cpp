#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "models/text/tokenizer/model/byte_trie.h"
#include "models/text/tokenizer/model/model.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

/// Difference between the lowest score of a token and the score of an unknown character.
constexpr double unknown_penalty = 10.0;

struct Scored {
  TokenTable tokens;
  std::vector<double> scores;
};

Scored read_scored(const JsonNode& place) {
  Scored read;
  if (!place.is_array()) place.fail("is not a list", "tokenizer_vocab");
  const auto& all = place.value();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& entry = all[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number())
      place.item(i).fail("is not a token and its score", "tokenizer_vocab");
    read.tokens.push(entry[0].get_ref<const std::string&>());
    read.scores.push_back(entry[1].get<double>());
  }
  return read;
}

/// Selects the tokens with the highest sum of scores (Viterbi).
class Unigram : public Model {
 public:
  Unigram(const Fields& fields, Scored read) : Model(std::move(read.tokens)), scores_(std::move(read.scores)) {
    falls_back_to_bytes_ = fields.boolean_or("byte_fallback", false);
    if (const auto unknown = fields.find("unk_id")) {
      unknown_ = static_cast<TokenId>(unknown->count());
      if (!tokens().has(unknown_)) unknown->fail(fmt::format("is {}, of {} tokens", unknown_, tokens().size()));
    }
    // If a text occurs twice, the last score wins.
    for (TokenId id = 0; id < tokens().end(); ++id) trie_.set(tokens().text(id), id);
    unknown_score_ = std::numeric_limits<double>::infinity();
    for (const double score : scores_) unknown_score_ = std::min(unknown_score_, score);
    unknown_score_ -= unknown_penalty;
    for (std::size_t byte = 0; byte < fallback_.size(); ++byte)
      fallback_[byte] = tokens().find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }

  TokenId transparent_token() const override { return unknown_; }

  void tokenize(std::string_view word, bool, WordCache& cache, std::vector<ModelToken>& out) const override {
    if (const auto found = cache.find(word)) {
      out.insert(out.end(), found->begin(), found->end());
      return;
    }
    const std::size_t first = out.size();
    std::vector<ModelToken> path = best_path(word);  // in reverse order
    for (std::size_t i = path.size(); i-- > 0;) {
      ModelToken token = path[i];
      // Fuse consecutive unknown characters. The result may be a token after all.
      while (token.id == unknown_ && i > 0 && path[i - 1].id == unknown_) token.end = path[--i].end;
      put(word, token, out);
    }
    cache.insert(word, std::span(out).subspan(first));
  }

 private:
  struct Node {
    double score = 0;  ///< of the best path to this node
    std::uint32_t begin = 0;
    TokenId id = -1;  ///< last token of the path, which starts at `begin`; -1: no path yet
  };

  std::vector<ModelToken> best_path(std::string_view word) const {
    std::vector<Node> nodes(word.size() + 1);
    std::size_t steps = 0;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t next = at + character_size(word[at]);
      const double score = nodes[at].score;
      const auto reach = [&](std::size_t end, TokenId id, double gain) {
        Node& node = nodes[end];
        if (node.id < 0 || score + gain > node.score) node = {score + gain, static_cast<std::uint32_t>(at), id};
      };
      bool has_character = false;
      steps += trie_.for_each_prefix(word, at, [&](std::size_t end, TokenId id) {
        reach(end, id, scores_[id]);
        has_character = has_character || end == next;
      });
      check_steps(steps, word);
      if (!has_character && (nodes[next].id < 0 || score + unknown_score_ > nodes[next].score))
        reach(next, unknown(), unknown_score_);
      at = next;
    }
    std::vector<ModelToken> path;
    for (auto end = static_cast<std::uint32_t>(word.size()); end > 0; end = nodes[end].begin)
      path.push_back({nodes[end].id, nodes[end].begin, end});
    return path;
  }

  TokenId unknown() const {
    if (unknown_ < 0)
      throw UserError("a text holds an unknown character, and the model has no 'unk_id'", "tokenizer_unk");
    return unknown_;
  }

  void put(std::string_view word, const ModelToken& token, std::vector<ModelToken>& out) const {
    const std::string_view piece = word.substr(token.begin, token.end - token.begin);
    const auto fallback = [&](char byte) { return fallback_[static_cast<unsigned char>(byte)]; };
    if (const auto id = tokens().find(piece)) {
      out.push_back({*id, token.begin, token.end});
    } else if (falls_back_to_bytes_ &&
               std::all_of(piece.begin(), piece.end(), [&](char byte) { return fallback(byte) >= 0; })) {
      for (const char byte : piece) out.push_back({fallback(byte), token.begin, token.end});
    } else {
      out.push_back({unknown(), token.begin, token.end});
    }
  }

  std::vector<double> scores_;
  ByteTrie trie_;
  std::array<TokenId, 256> fallback_{};  ///< <0x00> to <0xFF>; -1: none
  TokenId unknown_ = -1;
  double unknown_score_ = 0;
  bool falls_back_to_bytes_ = false;
};

}  // namespace

std::unique_ptr<const Model> read_unigram(const JsonNode& place) {
  const Fields fields(place, {"unk_id", "vocab", "byte_fallback"});
  return std::make_unique<Unigram>(fields, read_scored(fields.get("vocab")));
}

}  // namespace lathe::text
