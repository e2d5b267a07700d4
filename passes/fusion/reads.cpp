#include "passes/fusion/reads.h"

#include <iterator>

#include "ir/ops/draws.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/regions/own_region.h"

namespace lathe {

using namespace ir;

namespace {

SharedIndex shared_identity(int rank) {
  constexpr int most = 8;  // usual limit of a tensor's rank
  static const std::vector<SharedIndex> known = [] {
    std::vector<SharedIndex> identities;
    for (int r = 0; r <= most; ++r) identities.emplace_back(identity_index(r));
    return identities;
  }();
  return rank <= most ? known[rank] : SharedIndex(identity_index(rank));
}

/// Returns broadcast_index() of the reader's own index.
SharedIndex own_index(const Shape& operand, const Shape& space) {
  const SharedIndex identity = shared_identity(space.rank());
  bool stretched = operand.rank() != space.rank();
  for (int i = 0; i < operand.rank() && !stretched; ++i) stretched = operand[i].is(1) && !space[i].is(1);
  return stretched ? SharedIndex(broadcast_index(operand, space, identity)) : identity;
}

/// Returns the reads of concat: each operand is read at the index minus the sizes before it.
std::vector<OperandRead> concat_reads(const Graph& graph, const Node& node) {
  std::vector<OperandRead> reads;
  const int rank = node.type.rank();
  const auto dim = static_cast<std::size_t>((node.attrs.get<std::int64_t>("dim") + rank) % rank);
  Dim start(0);
  for (const ValueId operand : node.operands) {
    AffineIndex index = identity_index(rank);
    index[dim].offset = Dim(0) - start;
    start = start + graph[operand].type.shape[static_cast<int>(dim)].unnamed();
    reads.push_back({operand, std::move(index)});
  }
  return reads;
}

OperandRead pad_read(const Node& node) {
  const int rank = node.type.rank();
  AffineIndex index = identity_index(rank);
  const auto dim = static_cast<std::size_t>((node.attrs.get<std::int64_t>("dim") + rank) % rank);
  index[dim].offset = Dim(0) - node.attrs.get<Dim>("low");
  return {node.operands[0], std::move(index)};
}

/// Returns the reads of gather: the indices are read at the dims that they have in the result, the table at a
/// position that depends on data.
std::vector<OperandRead> gather_reads(const Graph& graph, const Node& node) {
  const int table_rank = graph[node.operands[0]].type.rank();
  const auto dim = static_cast<int>((node.attrs.get<std::int64_t>("dim") + table_rank) % table_rank);
  AffineIndex index;
  for (int i = 0; i < graph[node.operands[1]].type.rank(); ++i)
    index.push_back({.dim = dim + i, .scale = 1, .offset = 0});
  if (is_index_check(graph, node)) return {{node.operands[1], std::move(index)}};
  return {{node.operands[0], {}, false}, {node.operands[1], std::move(index)}};
}

/// Returns how a value that is computed in place reads its operands, in terms of its reader's index space.
std::vector<OperandRead> reads_in_place(const Graph& graph, const OperandRead& read) {
  std::vector<OperandRead> reads = operand_reads(graph, graph[read.operand]);
  for (OperandRead& inner : reads) {
    inner.affine = inner.affine && read.affine;
    if (!inner.affine) continue;
    if (read.index.is_same(shared_identity(static_cast<int>(read.index.size())))) continue;
    AffineIndex index = inner.index;
    for (AffineComponent& c : index) c = composed(c, read.index);
    inner.index = std::move(index);
  }
  return reads;
}

bool is_in_place(const Graph& graph, ValueId id, const NodeMap<bool>& inlined) {
  return inlined[id] || is_alias(graph[id]) || is_splat(graph[id]);
}

/// Adds the values that are read in the end, through views and through the nodes that `inlined` marks.
void look_through(const Graph& graph, OperandRead first, const NodeMap<bool>& inlined, std::vector<Read>& found) {
  if (!is_in_place(graph, first.operand, inlined)) {
    found.push_back({first.operand, std::move(first.index), first.affine});
    return;
  }
  std::vector<OperandRead> work;  // a stack
  work.push_back(std::move(first));
  while (!work.empty()) {
    OperandRead read = std::move(work.back());
    work.pop_back();
    const Node& node = graph[read.operand];
    if (is_alias(node)) {
      const IndexMap map = node.op->as<View>()->map(graph, node);
      const bool affine = read.affine && !map.reshape;
      work.push_back({node.operands[0], affine ? through_view(map, read.index) : AffineIndex{}, affine});
    } else if (is_splat(node)) {
      continue;
    } else if (!inlined[read.operand]) {
      found.push_back({read.operand, std::move(read.index), read.affine});
    } else {
      std::vector<OperandRead> inner = reads_in_place(graph, read);
      std::move(inner.rbegin(), inner.rend(), std::back_inserter(work));
    }
  }
}

}  // namespace

bool is_index_check(const Graph& graph, const Node& node) {
  return node.op == &ops::gather && is_flat_iota(graph[node.operands[0]]);
}

bool is_flat_iota(const Node& node) { return node.op == &ops::iota && node.type.rank() == 1; }

bool reshapes_memory(const Graph& graph, const Node& view) {
  return view.op->as<View>()->map(graph, view).reshape &&
         !is_flat_iota(graph[through_aliases(graph, view.operands[0])]);
}

const Shape& index_space(const Graph& graph, const Node& node) {
  return node.op->as<Reduce>() ? graph[node.operands[0]].type.shape : node.type.shape;
}

std::vector<OperandRead> operand_reads(const Graph& graph, const Node& node) {
  const Shape& space = index_space(graph, node);
  if (node.op == &ops::concat) return concat_reads(graph, node);
  if (node.op == &ops::pad) return {pad_read(node)};
  if (node.op == &ops::gather) return gather_reads(graph, node);
  std::vector<OperandRead> reads;
  reads.reserve(node.operands.size());
  for (const ValueId operand : node.operands) {
    // The state of a random draw is two integers read at fixed positions.
    const bool whole = own_region(node) || (is_draw(*node.op) && operand == node.operands[0]);
    reads.push_back(whole ? OperandRead{operand, {}, false}
                          : OperandRead{operand, own_index(graph[operand].type.shape, space)});
  }
  return reads;
}

std::vector<Read> reads_of(const Graph& graph, ValueId id, const NodeMap<bool>& inlined) {
  const Node& node = graph[id];
  std::vector<Read> found;
  found.reserve(node.operands.size());
  if (node.op->as<Contraction>() || own_region(node)) {
    for (const ValueId operand : node.operands) look_through(graph, {operand, {}, false}, inlined, found);
  } else {
    for (OperandRead& read : operand_reads(graph, node)) look_through(graph, std::move(read), inlined, found);
  }
  return found;
}

bool is_computed_in_region(const Graph& graph, ValueId id, const NodeMap<bool>& inlined) {
  const Node& node = graph[id];
  return !is_alias(node) && !inlined[id] && !node.op->as<Argument>() && node.op != &ops::constant;
}

NodeReads all_reads(const Graph& graph, const NodeMap<bool>& inlined) {
  NodeReads reads(graph);
  for (const ValueId id : all_values(graph))
    if (is_computed_in_region(graph, id, inlined)) reads[id] = reads_of(graph, id, inlined);
  return reads;
}

}  // namespace lathe
