#pragma once

#include <functional>
#include <optional>

#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"
#include "passes/lowering/lower_options.h"

namespace lathe {

/// The options of one compilation. Each stage that is not always run names the field that enables it (stages.cpp).
struct CompileRequest {
  std::optional<DType> dtype = {};          ///< "dtype": the dtype of the graph's f32 values
  std::optional<DType> low_precision = {};  ///< "mixed-bf16", "mixed-f16"
  DimBindings sizes = {};                   ///< "known-sizes": these dims become numbers
  bool evaluation = false;                  ///< "evaluation": no dropout
  /// "shard": from the graph of all processes to the graph of one (passes/shard/shard.h).
  std::function<ir::Graph(const ir::Graph&)> shard = {};
  bool ring = false;            ///< "ring": gathered keys and values are passed around instead
  LowerOptions lower = {};      ///< attention, row chunks, memory budget, buckets, tuning
  DimBindings plan_sizes = {};  ///< for "memory-plan": a size of every symbolic dim
};

}  // namespace lathe
