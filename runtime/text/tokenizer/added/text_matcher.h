#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/model/pair_map.h"

namespace lathe::text {

/// Finds many texts at once (Aho, Corasick 1975): of those that start leftmost the longest, then what follows its
/// end.
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

  bool empty() const { return nodes_.size() == 1; }
  /// The next match at byte `from` or later; false where there is none.
  bool search(std::string_view text, std::size_t from, Match& match) const;

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
  std::array<bool, 256> starts_{};  ///< bytes that some text starts with
};

}  // namespace lathe::text
