#include "runtime/text/tokenizer/added/text_matcher.h"

#include <algorithm>

namespace lathe::text {

void TextMatcher::add(std::string_view text, std::int32_t value) {
  std::uint32_t node = 0;
  for (const char c : text) {
    std::uint32_t& child = children_[PairMap<std::uint32_t>::key(node, static_cast<unsigned char>(c))];
    if (child == 0) {
      child = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.depth = nodes_[node].depth + 1});
    }
    node = child;
  }
  if (nodes_[node].value < 0) nodes_[node].value = value;
  starts_[static_cast<unsigned char>(text[0])] = true;
}

void TextMatcher::build() {
  struct Edge {
    std::uint32_t parent, child;
    unsigned char byte;
  };
  std::vector<Edge> edges;
  children_.for_each([&](std::uint64_t key, std::uint32_t child) {
    edges.push_back({static_cast<std::uint32_t>(key >> 32), child, static_cast<unsigned char>(key)});
  });
  // Parents before children: a node's fallback is less deep than the node.
  std::sort(edges.begin(), edges.end(), [&](const Edge& a, const Edge& b) {
    const std::uint32_t depth_a = nodes_[a.child].depth, depth_b = nodes_[b.child].depth;
    return depth_a != depth_b ? depth_a < depth_b : a.child < b.child;
  });
  for (const Edge& edge : edges) {
    Node& node = nodes_[edge.child];
    node.fallback = edge.parent == 0 ? 0 : step(nodes_[edge.parent].fallback, edge.byte);
    node.output = node.value >= 0 ? edge.child : nodes_[node.fallback].output;
  }
}

std::uint32_t TextMatcher::step(std::uint32_t node, unsigned char byte) const {
  for (;; node = nodes_[node].fallback) {
    if (const std::uint32_t* child = children_.find(node, byte)) return *child;
    if (node == 0) return 0;
  }
}

bool TextMatcher::search(std::string_view text, std::size_t from, Match& match) const {
  bool is_found = false;
  std::uint32_t node = 0;
  for (std::size_t at = from; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (node == 0 && !starts_[byte]) {
      if (is_found) return true;
      continue;
    }
    node = step(node, byte);
    const std::size_t end = at + 1;
    if (is_found && end - nodes_[node].depth > match.begin) return true;
    const Node& output = nodes_[nodes_[node].output];
    if (output.value < 0) continue;
    const std::size_t begin = end - output.depth;
    if (!is_found || begin <= match.begin) match = {begin, end, output.value};
    is_found = true;
  }
  return is_found;
}

}  // namespace lathe::text
