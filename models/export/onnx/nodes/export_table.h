#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "models/export/onnx/nodes/op_export.h"

namespace lathe::ir {
struct Op;
class Value;
}  // namespace lathe::ir

namespace lathe::onnx {

/// How an op of Lathe becomes nodes of ONNX. An op without a record is exported by its expansion.
struct ExportRecord {
  const ir::Op* op;
  /// Adds the nodes and returns the name of the result; null if ONNX has no nodes for the op.
  Text (*emit)(const OpExport& op);
  /// The ONNX ops that the nodes are, for docs/onnx.md; for an op that is not exported, the reason.
  std::string_view as;
  /// For a composite: whether `emit` computes this node in an opset. Otherwise it is expanded. Null: always.
  bool (*fits)(const ir::Node& node, std::span<const ir::Value> operands, std::int64_t opset) = nullptr;
};

/// The records of parts of the ops, each from its own file.
std::span<const ExportRecord> elementwise_exports();
std::span<const ExportRecord> integer_exports();
std::span<const ExportRecord> view_exports();
std::span<const ExportRecord> source_exports();
std::span<const ExportRecord> reduction_exports();
std::span<const ExportRecord> product_exports();
std::span<const ExportRecord> indexing_exports();
std::span<const ExportRecord> activation_exports();
std::span<const ExportRecord> network_exports();
std::span<const ExportRecord> loop_exports();
std::span<const ExportRecord> ops_without_export();

/// Returns the record of an op, or null.
const ExportRecord* find_export(const ir::Op& op);

}  // namespace lathe::onnx
