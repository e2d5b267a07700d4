#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/model/pair_map.h"

namespace lathe::text {

/// Finds many texts at once (Aho and Corasick, 1975), with leftmost-longest matches that do not overlap. The
/// automaton matches the reversed texts, so that one pass from the end finds the longest text at each start.
class TextMatcher {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
    std::int32_t value = -1;
  };

  /// `text` must not be empty. If it was added before, it keeps its value.
  void add(std::string_view text, std::int32_t value);
  /// Must be called once, after all add() calls.
  void build();

  /// Returns all matches in order. Linear in the size of the text.
  std::vector<Match> find(std::string_view text) const;

 private:
  struct Node {
    std::uint32_t fallback = 0;  ///< longest proper suffix that is a node
    std::uint32_t output = 0;    ///< longest suffix that is one of the texts, including the node itself; 0: none
    std::uint32_t depth = 0;
    std::int32_t value = -1;  ///< value of the text that ends here
  };
  std::uint32_t step(std::uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_{1};
  PairMap<std::uint32_t> children_;
  std::array<bool, 256> ends_{};  ///< bytes that are the last one of some text
};

}  // namespace lathe::text
