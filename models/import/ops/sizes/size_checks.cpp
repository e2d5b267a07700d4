#include "models/import/ops/sizes/size_checks.h"

namespace lathe::importing {

void require_at_least(const OpCall& call, std::int64_t least, const Dim& size, std::string message) {
  const ir::DimCheck check{.left = least,
                           .right = size,
                           .relation = ir::DimCheck::Relation::at_most,
                           .loc = call.node().location,
                           .op = call.node().op,
                           .label = "import_range",
                           .message = std::move(message)};
  call.graph().builder().add_checks({&check, 1});
}

}  // namespace lathe::importing
