#include "models/text/tokenizer/model/byte_trie.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>

using lathe::TokenId;
using lathe::text::ByteTrie;

TEST_CASE("a byte trie finds the strings at each position, shortest first, as a map does") {
  std::mt19937_64 random(1);
  const auto word = [&](std::size_t longest, std::string_view letters) {
    std::string made;
    for (std::size_t i = random() % (longest + 1); i > 0; --i) made.push_back(letters[random() % letters.size()]);
    return made;
  };
  using Found = std::vector<std::pair<std::size_t, TokenId>>;
  for (int round = 0; round < 1000; ++round) {
    ByteTrie trie;
    std::map<std::string, TokenId> strings;
    for (TokenId id = 0; id < 10; ++id) {
      const std::string key = word(6, "ab");
      trie.set(key, id);
      strings[key] = id;
    }
    const std::string text = word(12, "abc");
    for (std::size_t begin = 0; begin <= text.size(); ++begin) {
      Found found, expected;
      const std::size_t read =
          trie.for_each_prefix(text, begin, [&](std::size_t end, TokenId id) { found.emplace_back(end, id); });
      for (std::size_t end = begin + 1; end <= text.size(); ++end)
        if (const auto at = strings.find(text.substr(begin, end - begin)); at != strings.end())
          expected.emplace_back(end, at->second);
      INFO(text << " from " << begin);
      CHECK(found == expected);
      CHECK(read <= text.size() - begin + 1);
    }
  }
}
