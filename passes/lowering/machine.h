#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/machine/gpu_product_sizes.h"
#include "ir/machine/row_chunks.h"
#include "passes/fusion/fusion.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/region_kernels.h"
#include "passes/program/program.h"

namespace lathe {

/// Builds the kernels of a region, with a launch of each.
using RegionSchedule = std::vector<KernelContext::Built> (*)(const LoweringContext&, const Region&);

/// A form that a machine's code generator gives kernels: LLVM IR, assembly, CUDA C++.
struct CodeStage {
  std::string name, doc;
  std::string comment = "//";  ///< begins a comment in that language
  std::function<std::string(const kernel::Kernel&)> print;
};

/// Everything that compilation depends on for one kind of machine: the schedules of its regions, and the facts that
/// passes and fusion ask for.
struct Machine {
  MachineInfo info;
  std::map<RegionKind, RegionSchedule> schedules;  ///< one for each kind of region that its fusion makes
  RegionSchedule before = nullptr;                 ///< kernels that run before those of a region
  KernelContext::Built (*copy)(const MachineInfo&, DType, int from, int to, const Dim& elements) = nullptr;
  /// Reduces the pieces received from `ranks` processes. Null: the machine runs graphs of one process only.
  KernelContext::Built (*fold)(const MachineInfo&, DType, ScalarOp combine, int received, int folded,
                               const Dim& elements, std::int64_t ranks) = nullptr;
  std::int64_t folded_bytes = 0;                        ///< of a process, at once: Exchange::Part::window; 0 for all
  FusionOptions fusion = {};                            ///< regions that it has schedules for
  RowChunks chunks = {};                                ///< the default of "chunk-rows"
  bool casts_before_views = false;                      ///< runs "cast-before-views"
  std::optional<GpuProductSizes> padded_products = {};  ///< runs "pad-products", with these sizes
  void (*finish)(Program&) = nullptr;  ///< the last change of a program, such as the names of its kernels
  bool keeps_budgets = false;          ///< supports LowerOptions::memory
  std::vector<CodeStage> code = {};    ///< in order; the last is the one that is loaded
};

}  // namespace lathe
