#include "models/export/onnx/nodes/export_table.h"

namespace lathe::onnx {

const ExportRecord* find_export(const ir::Op& op) {
  for (const auto records : {elementwise_exports(), integer_exports(), view_exports(), source_exports(),
                             reduction_exports(), product_exports(), indexing_exports(), activation_exports(),
                             network_exports(), loop_exports(), ops_without_export()})
    for (const ExportRecord& record : records)
      if (record.op == &op) return &record;
  return nullptr;
}

}  // namespace lathe::onnx
