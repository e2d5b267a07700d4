#include "passes/program/require_one_process.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/collectives.h"
#include "ir/tensor/op/op.h"

namespace lathe {

namespace {

const ir::Node* first_collective(const ir::Graph& graph) {
  const auto collectives = [](const ir::Node& node) {
    return ir::is_collective(*node.op) && ir::axis_of(node).ranks != 1;
  };
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), collectives);
  return found == graph.nodes.end() ? nullptr : &*found;
}

}  // namespace

bool is_of_one_process(const ir::Graph& graph) { return !first_collective(graph); }

void require_one_process(const ir::Graph& graph) {
  if (const ir::Node* found = first_collective(graph)) {
    const ir::Node& node = *found;
    throw UserError(node.loc, node.op->name.value,
                    fmt::format("@{} is the graph of one of several processes", graph.name), "one_process",
                    "for the CPU give CompileOptions::ranks, the processes that run it together; no other target "
                    "collectives with others");
  }
}

}  // namespace lathe
