#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/encoding.h"
#include "models/text/tokenizer/model/pair_map.h"

namespace lathe::text {

/// A byte-wise trie of strings with ids.
class ByteTrie {
 public:
  void set(std::string_view key, TokenId id) {
    std::uint32_t node = 0;
    for (const char byte : key) {
      std::uint32_t& child = children_[PairMap<std::uint32_t>::key(node, static_cast<unsigned char>(byte))];
      if (child == 0) {
        child = static_cast<std::uint32_t>(ids_.size());
        ids_.push_back(-1);
      }
      node = child;
    }
    ids_[node] = id;
  }

  /// Calls visit(end, id) for each string of the trie that starts at byte `begin` of `text`, shortest first. Returns
  /// the number of bytes read.
  template <class Visit>
  std::size_t for_each_prefix(std::string_view text, std::size_t begin, const Visit& visit) const {
    std::uint32_t node = 0;
    std::size_t at = begin;
    for (; at < text.size(); ++at) {
      const std::uint32_t* child = children_.find(node, static_cast<unsigned char>(text[at]));
      if (!child) break;
      node = *child;
      if (ids_[node] >= 0) visit(at + 1, ids_[node]);
    }
    return at - begin + 1;
  }

 private:
  PairMap<std::uint32_t> children_;
  std::vector<TokenId> ids_{-1};  ///< id of the string that ends at a node; -1: none
};

}  // namespace lathe::text
