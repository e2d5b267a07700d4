#include "passes/lowering/require_one_process.h"

#include <fmt/core.h>

#include "ir/tensor/op.h"

namespace lathe {

void require_one_process(const ir::Graph& graph) {
  for (const ir::Node& node : graph.nodes) {
    const auto* custom = node.op->as<ir::Custom>();
    if (!custom || (custom->kind != ir::CustomKind::collective && custom->kind != ir::CustomKind::random_at))
      continue;
    throw UserError(node.loc, node.op->name.value,
                    fmt::format("@{} is the graph of one of several processes, which is not compiled", graph.name),
                    "one_process", "compile the graph before it is divided, or simulate all processes");
  }
}

}  // namespace lathe
