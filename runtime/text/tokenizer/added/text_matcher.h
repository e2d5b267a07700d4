#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/model/pair_map.h"

namespace lathe::text {

/// Finds many texts at once (Aho, Corasick 1975): of those that start leftmost the longest, then the same behind its
/// end. The automaton is that of the texts read backwards, so that the longest text that starts at each place is
/// known after one pass from the end.
class TextMatcher {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;
    std::int32_t value = -1;
  };

  /// `text` is not empty. Where it is there already, its value stays.
  void add(std::string_view text, std::int32_t value);
  /// To be called once, after all texts are added.
  void build();

  /// All matches, in order. The time is linear in the text.
  std::vector<Match> find(std::string_view text) const;

 private:
  struct Node {
    std::uint32_t fallback = 0;  ///< the longest proper suffix that is a node
    std::uint32_t output = 0;    ///< the longest suffix that is a text, itself included; 0: none
    std::uint32_t depth = 0;
    std::int32_t value = -1;  ///< of the text that ends here
  };
  std::uint32_t step(std::uint32_t node, unsigned char byte) const;

  std::vector<Node> nodes_{1};
  PairMap<std::uint32_t> children_;
  std::array<bool, 256> ends_{};  ///< bytes that some text ends with
};

}  // namespace lathe::text
