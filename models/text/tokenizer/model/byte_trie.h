#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/encoding.h"
#include "models/text/tokenizer/model/pair_map.h"

namespace lathe::text {

/// A trie of strings with ids, which stores bytes without a branch between them as one label: reading a long string
/// compares memory instead of looking up each byte.
class ByteTrie {
 public:
  void set(std::string_view key, TokenId id) {
    std::uint32_t node = 0;
    for (std::size_t at = 0; at < key.size();) {
      std::uint32_t child = child_of(node, key[at]);
      const std::size_t same = child == 0 ? key.size() - at : common(label(child), key.substr(at));
      if (child == 0)
        child_of(node, key[at]) = child = added(key.substr(at));
      else if (same < nodes_[child].size)
        child = split(node, child, same);
      node = child;
      at += same;
    }
    nodes_[node].id = id;
  }

  /// Calls visit(end, id) for each string of the trie that starts at byte `begin` of `text`, shortest first. Returns
  /// the number of bytes read.
  template <class Visit>
  std::size_t for_each_prefix(std::string_view text, std::size_t begin, const Visit& visit) const {
    std::uint32_t node = 0;
    for (std::size_t at = begin; at < text.size();) {
      const std::uint32_t* child = children_.find(node, static_cast<unsigned char>(text[at]));
      if (!child) return at - begin + 1;
      node = *child;
      const std::size_t same = common(label(node), text.substr(at));
      at += same;
      if (same < nodes_[node].size) return at - begin + 1;
      if (nodes_[node].id >= 0) visit(at, nodes_[node].id);
    }
    return text.size() - begin + 1;
  }

 private:
  struct Node {
    std::size_t label = 0, size = 0;  ///< its bytes in labels_, after those of its parent
    TokenId id = -1;                  ///< of the string that ends here; -1: none
  };

  std::string_view label(std::uint32_t node) const {
    return std::string_view(labels_).substr(nodes_[node].label, nodes_[node].size);
  }
  static std::size_t common(std::string_view a, std::string_view b) {
    const auto end = a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
    return static_cast<std::size_t>(std::mismatch(a.begin(), end, b.begin()).first - a.begin());
  }
  std::uint32_t& child_of(std::uint32_t node, char byte) {
    return children_[PairMap<std::uint32_t>::key(node, static_cast<unsigned char>(byte))];
  }
  std::uint32_t added(std::string_view bytes) {
    nodes_.push_back({.label = labels_.size(), .size = bytes.size()});
    labels_ += bytes;
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  /// Inserts a node between `parent` and `node` for the first `size` bytes of its label.
  std::uint32_t split(std::uint32_t parent, std::uint32_t node, std::size_t size) {
    const auto between = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back({.label = nodes_[node].label, .size = size});
    child_of(parent, labels_[nodes_[node].label]) = between;
    nodes_[node].label += size;
    nodes_[node].size -= size;
    child_of(between, labels_[nodes_[node].label]) = node;
    return between;
  }

  PairMap<std::uint32_t> children_;  ///< by parent and first byte of the label
  std::string labels_;
  std::vector<Node> nodes_{1};
};

}  // namespace lathe::text
