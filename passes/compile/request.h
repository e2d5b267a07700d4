#pragma once

#include <functional>
#include <optional>

#include "ir/options/lower_options.h"
#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// The options of a compilation. Each optional stage names the field that enables it (stages.cpp).
struct CompileRequest {
  std::optional<DType> dtype = {};          ///< "dtype": the dtype of the graph's f32 values
  std::optional<DType> low_precision = {};  ///< "mixed-bf16", "mixed-f16"
  DimBindings sizes = {};                   ///< "known-sizes": binds these dims to constants
  bool evaluation = false;                  ///< "evaluation": no dropout
  /// "shard": maps the global graph to the graph of one process (passes/shard/shard.h).
  std::function<ir::Graph(const ir::Graph&)> shard = {};
  bool ring = false;            ///< "ring": ring attention instead of gathered keys and values
  LowerOptions lower = {};      ///< attention, row chunks, memory budget, buckets, tuning
  DimBindings plan_sizes = {};  ///< for "memory-plan": binds every symbolic dim
};

}  // namespace lathe
