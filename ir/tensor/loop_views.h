#pragma once

#include <functional>

#include "ir/tensor/graph.h"
#include "ir/tensor/op/op.h"

/// The op `loop`. A loop runs its body, a graph, `trips` times. The arguments of the body are, in order:
///
///   carries     states; the body updates each of them. The first iteration reads the loop's operands, each other one
///               the values of the iteration before.
///   sequences   inputs; iteration t reads the elements at index t of dim 0 of the loop's operands, or at index
///               trips - 1 - t if the loop runs in reverse.
///   invariants  the other inputs; all iterations read the loop's operands.
///
/// The results are the last value of each carry, then each output of the body, stacked along a new dim 0: iteration t
/// sets index t, or trips - 1 - t in reverse. A node has one value, so a loop is one node for each result, with equal
/// operands and attributes except `result`.
namespace lathe::ir {

inline bool is_loop(const Node& node) { return node.op->as<Loop>() != nullptr; }

/// Views of a loop node. Each requires is_loop(node).
const Body& loop_body(const Node& node);
const Dim& loop_trips(const Node& node);
bool loop_reverse(const Node& node);
int loop_result(const Node& node);
int carry_count(const Node& node);
int sequence_count(const Node& node);
/// Returns the number of results of all nodes of the loop together.
int result_count(const Node& node);

/// Returns whether two nodes are results of one loop.
bool is_same_loop(const Node& a, const Node& b);

/// Returns the value to which a body's update sets carry number i. [loop_body] ensures that there is one.
ValueId next_of(const Graph& body, int i);

/// Returns the graph with every body of its loops, and of the loops in them, replaced by the result of `change`,
/// which keeps the arguments, the updates and the outputs. It is called once per body, for inner bodies first.
Graph on_bodies(Graph graph, const std::function<Graph(Graph)>& change);

}  // namespace lathe::ir
