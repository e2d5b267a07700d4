#pragma once

#include <cstddef>
#include <vector>

namespace lathe {

/// Visits a node and its successors, each after its own successors, like a recursive function but without recursion:
/// `next(node)` returns the successors, `enter(node)` whether to visit a node (false if it is done or irrelevant),
/// and `leave(node)` visits it. Stops and returns false if `leave` returns false.
template <class Node, class Next, class Enter, class Leave>
bool post_order(Node root, const Next& next, const Enter& enter, const Leave& leave) {
  struct Open {
    Node node;
    std::size_t successors = 0;  // entered so far
  };
  std::vector<Open> open;
  if (enter(root)) open.push_back({root});
  while (!open.empty()) {
    const Node node = open.back().node;
    const auto& successors = next(node);
    if (open.back().successors == successors.size()) {
      open.pop_back();
      if (!leave(node)) return false;
      continue;
    }
    const Node successor = successors[open.back().successors++];
    if (enter(successor)) open.push_back({successor});
  }
  return true;
}

}  // namespace lathe
