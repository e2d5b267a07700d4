#include "ir/tensor/op/body.h"

#include <utility>

#include "ir/support/hash.h"
#include "ir/tensor/analysis/compare_graphs.h"
#include "ir/tensor/graph.h"

namespace lathe::ir {

namespace {

/// Arguments may be anywhere before their readers, so operands are not part of the hash.
std::size_t hash_of(const Graph& graph) {
  std::size_t hash = static_cast<std::size_t>(graph.size());
  for (const Node& node : graph.nodes)
    hash += mix_hash(std::hash<const void*>{}(node.op), node.attrs.hash());  // independent of the order
  return mix_hash(hash, graph.outputs.size());
}

}  // namespace

Body::Body(Graph graph) : graph_(std::make_shared<const Graph>(std::move(graph))), hash_(hash_of(*graph_)) {}

bool Body::looks_like(const Body& other) const {
  return is_same(other) || (hash_ == other.hash_ && structurally_equal(*graph_, *other.graph_));
}

bool Body::operator==(const Body& other) const {
  return is_same(other) || (hash_ == other.hash_ && structurally_equal(*graph_, *other.graph_, {.names = false}));
}

}  // namespace lathe::ir
