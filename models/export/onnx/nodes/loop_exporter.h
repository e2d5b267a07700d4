#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ir/tensor/graph.h"
#include "models/export/onnx/dim_values.h"
#include "models/export/onnx/model_builder.h"

namespace lathe::onnx {

class OpExport;

/// Where nodes are added, and the opset.
struct ExportTarget {
  ModelBuilder& model;
  DimValues& dims;
  std::int64_t opset;
};

/// Adds each loop of a graph as one Scan, of which the nodes of the loop are the results.
class LoopExporter {
 public:
  explicit LoopExporter(const ExportTarget& to) : to_(to) {}

  /// Returns the name of the result that a node of a loop is.
  Text result(const OpExport& loop);

 private:
  std::vector<Text> add(const OpExport& loop);

  ExportTarget to_;
  std::vector<std::pair<ir::ValueId, std::vector<Text>>> loops_;  ///< a node of each loop, and all results
};

}  // namespace lathe::onnx
