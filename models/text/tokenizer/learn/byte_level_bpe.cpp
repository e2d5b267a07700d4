#include "models/text/tokenizer/learn/byte_level_bpe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <unordered_map>

#include "ir/support/error.h"
#include "models/text/tokenizer/model/pair_map.h"
#include "models/text/tokenizer/split/byte_alphabet.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe {

namespace {

using nlohmann::json;
using text::PairMap;
using Id = std::uint32_t;

/// Tokens by id in GPT-2's alphabet, and the merged pairs.
struct Learned {
  std::vector<std::string> tokens;
  std::vector<std::pair<Id, Id>> merges;
};

class Learner {
 public:
  Learner(const std::vector<std::string>& words, const ByteLevelBpeOptions& options) : options_(options) {
    for (const std::string& token : options.special_tokens) add_token(token);
    add_bytes();
    std::map<std::string, std::int64_t> counts;
    for (const std::string& word : words) ++counts[word];
    for (const auto& [word, count] : counts) add_word(word, count);
    pairs_.for_each([&](std::uint64_t pair, const Pair& found) { queue_.push({found.count, pair}); });
  }

  Learned run() {
    while (learned_.tokens.size() < options_.vocabulary_size && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const std::int64_t now = pairs_[best.pair].count;
      if (now != best.count) {
        if (now > 0) queue_.push({now, best.pair});
        continue;
      }
      if (now < std::max<std::int64_t>(1, options_.least_count)) break;
      merge(best.pair);
    }
    return std::move(learned_);
  }

 private:
  struct Word {
    std::vector<Id> symbols;
    std::int64_t count = 0;
  };
  struct Pair {
    std::int64_t count = 0;
    std::vector<std::uint32_t> words;  ///< words that contain it or did earlier
  };
  struct Candidate {
    std::int64_t count;
    std::uint64_t pair;
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  Id add_token(const std::string& token) {
    const auto [found, fresh] = ids_.try_emplace(token, static_cast<Id>(learned_.tokens.size()));
    if (fresh) learned_.tokens.push_back(token);
    return found->second;
  }

  /// Adds the 256 bytes in the order of the characters that represent them.
  void add_bytes() {
    std::vector<std::pair<char32_t, int>> order;
    for (int byte = 0; byte < 256; ++byte)
      order.emplace_back(text::byte_character(static_cast<std::uint8_t>(byte)), byte);
    std::sort(order.begin(), order.end());
    for (const auto& [character, byte] : order) {
      std::string token;
      text::append_character(token, character);
      bytes_[byte] = add_token(token);
    }
  }

  void add_word(const std::string& word, std::int64_t count) {
    const auto index = static_cast<std::uint32_t>(words_.size());
    Word made{.symbols = {}, .count = count};
    for (const char byte : word) made.symbols.push_back(bytes_[static_cast<unsigned char>(byte)]);
    for (std::size_t i = 0; i + 1 < made.symbols.size(); ++i)
      change(made.symbols[i], made.symbols[i + 1], count, index);
    words_.push_back(std::move(made));
  }

  /// Changes the count of a pair. If it increases, records that the word contains the pair.
  void change(Id left, Id right, std::int64_t by, std::uint32_t word) {
    Pair& pair = pairs_[PairMap<Pair>::key(left, right)];
    pair.count += by;
    if (by > 0 && (pair.words.empty() || pair.words.back() != word)) pair.words.push_back(word);
  }

  void merge(std::uint64_t pair) {
    const Id left = static_cast<Id>(pair >> 32), right = static_cast<Id>(pair);
    const Id made = add_token(learned_.tokens[left] + learned_.tokens[right]);
    learned_.merges.emplace_back(left, right);
    std::vector<std::uint32_t> where = pairs_[pair].words;
    std::sort(where.begin(), where.end());
    where.erase(std::unique(where.begin(), where.end()), where.end());
    std::set<std::uint64_t> grown;
    for (const std::uint32_t word : where) merge_in(word, left, right, made, grown);
    for (const std::uint64_t other : grown)
      if (const std::int64_t count = pairs_[other].count; count > 0) queue_.push({count, other});
  }

  void merge_in(std::uint32_t index, Id left, Id right, Id made, std::set<std::uint64_t>& grown) {
    Word& word = words_[index];
    std::vector<Id>& symbols = word.symbols;
    std::size_t to = 0;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      if (symbols[i] != left || i + 1 == symbols.size() || symbols[i + 1] != right) {
        symbols[to++] = symbols[i];
        continue;
      }
      if (to > 0) {
        change(symbols[to - 1], left, -word.count, index);
        change(symbols[to - 1], made, word.count, index);
        grown.insert(PairMap<Pair>::key(symbols[to - 1], made));
      }
      if (i + 2 < symbols.size()) {
        change(right, symbols[i + 2], -word.count, index);
        change(made, symbols[i + 2], word.count, index);
        grown.insert(PairMap<Pair>::key(made, symbols[i + 2]));
      }
      symbols[to++] = made;
      ++i;
    }
    symbols.resize(to);
  }

  const ByteLevelBpeOptions options_;
  Learned learned_;
  std::unordered_map<std::string, Id> ids_;
  std::array<Id, 256> bytes_{};
  std::vector<Word> words_;
  PairMap<Pair> pairs_;
  std::priority_queue<Candidate> queue_;
};

/// Returns a tokenizer.json without the model's tokens and merges.
json frame() {
  const json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", byte_level},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", json::object()},
            {"merges", json::array()}}}};
}

json describe(const Learned& learned, const std::vector<std::string>& special_tokens) {
  json made = frame();
  for (std::size_t i = 0; i < special_tokens.size(); ++i)
    made["added_tokens"].push_back({{"id", i},
                                    {"content", special_tokens[i]},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", true}});
  for (std::size_t i = 0; i < learned.tokens.size(); ++i) made["model"]["vocab"][learned.tokens[i]] = i;
  for (const auto& [left, right] : learned.merges)
    made["model"]["merges"].push_back({learned.tokens[left], learned.tokens[right]});
  return made;
}

void check(const ByteLevelBpeOptions& options) {
  std::set<std::string> seen;
  for (const std::string& token : options.special_tokens)
    if (token.empty() || !seen.insert(token).second)
      throw UserError(fmt::format("the special token \"{}\" is {}", token, token.empty() ? "empty" : "there twice"),
                      "tokenizer_size", "give special tokens that are texts and differ");
  const std::size_t least = options.special_tokens.size() + 256;
  if (options.vocabulary_size < least || options.vocabulary_size > (std::size_t{1} << 24))
    throw UserError(fmt::format("a vocabulary of {} tokens", options.vocabulary_size), "tokenizer_size",
                    fmt::format("give {} for bytes and special tokens, or more, and at most 2^24", least));
}

}  // namespace

Tokenizer learn_byte_level_bpe(std::string_view text, const ByteLevelBpeOptions& options) {
  check(options);
  // A tokenizer without merges splits words like the learned one.
  Learner bytes({}, {.vocabulary_size = 256, .special_tokens = {}});
  const Tokenizer splitter = Tokenizer::parse(describe(bytes.run(), {}).dump(), "byte-level BPE");
  const Learned learned = Learner(splitter.words_of(text), options).run();
  return Tokenizer::parse(describe(learned, options.special_tokens).dump(), "learned tokenizer.json");
}

}  // namespace lathe
