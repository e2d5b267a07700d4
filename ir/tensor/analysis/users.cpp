#include "ir/tensor/analysis/users.h"

namespace lathe::ir {

Users::Users(const Graph& graph)
    : users_(graph.nodes.size(), [&](const auto& add) {
        for (const ValueId id : all_values(graph))
          for (const ValueId operand : graph[id].operands) add(static_cast<std::size_t>(operand.index), id);
      }) {}

}  // namespace lathe::ir
