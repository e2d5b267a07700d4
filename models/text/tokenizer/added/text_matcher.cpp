#include "models/text/tokenizer/added/text_matcher.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace lathe::text {

void TextMatcher::add(std::string_view text, std::int32_t value) {
  std::uint32_t node = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    const char c = text[at];
    std::uint32_t& child = children_[PairMap<std::uint32_t>::key(node, static_cast<unsigned char>(c))];
    if (child == 0) {
      child = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.depth = nodes_[node].depth + 1});
    }
    node = child;
  }
  if (nodes_[node].value < 0) nodes_[node].value = value;
  ends_[static_cast<unsigned char>(text.back())] = true;
}

void TextMatcher::build() {
  struct Edge {
    std::uint32_t parent, child;
    unsigned char byte;
  };
  // Parents before children, because a node's fallback has a smaller depth than the node.
  std::vector<std::size_t> next;  // position of the next edge to a node of a depth
  for (const Node& node : nodes_) {
    if (next.size() < node.depth + 2) next.resize(node.depth + 2);
    ++next[node.depth + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Edge> edges(nodes_.size());  // the first one, of the root, is not used
  children_.for_each([&](std::uint64_t key, std::uint32_t child) {
    edges[next[nodes_[child].depth]++] = {static_cast<std::uint32_t>(key >> 32), child,
                                          static_cast<unsigned char>(key)};
  });
  for (const Edge& edge : std::span(edges).subspan(1)) {
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

std::vector<TextMatcher::Match> TextMatcher::find(std::string_view text) const {
  std::vector<Match> matches;  // the longest match at each start, in reverse order
  std::uint32_t node = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (node == 0 && !ends_[byte]) continue;
    node = step(node, byte);
    const Node& output = nodes_[nodes_[node].output];
    if (output.value >= 0) matches.push_back({at, at + output.depth, output.value});
  }
  std::reverse(matches.begin(), matches.end());
  std::size_t end = 0;
  std::erase_if(matches, [&](const Match& match) {
    if (match.begin < end) return true;
    end = match.end;
    return false;
  });
  return matches;
}

}  // namespace lathe::text
