#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/options/row_chunks.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/prepare/pad_products.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/region_kernels.h"
#include "passes/program/program.h"

namespace lathe {

/// Builds the kernels of a region, each with its launch.
using RegionSchedule = std::function<std::vector<KernelContext::Built>(const LoweringContext&, const Region&)>;

/// A form of a program that the code generator can print: its kernels as LLVM IR, assembly or CUDA C++; or what runs
/// them.
struct CodeStage {
  std::string name, doc;
  std::string comment = "//";  ///< comment prefix of that language
  std::function<std::string(const kernel::Kernel&)> print = {};
  /// Instead of `print`: prints the whole program, for these sizes of all dims.
  std::function<std::string(const Program&, const DimBindings&)> print_program = {};
};

/// Everything that compilation needs to know about one kind of hardware: the schedules of its regions, and facts for
/// passes and fusion.
struct Machine {
  HardwareInfo info;
  std::map<RegionKind, RegionSchedule> schedules;  ///< one per region kind that its fusion creates
  RegionSchedule before = nullptr;                 ///< builds kernels that run before those of a region
  KernelContext::Built (*copy)(const HardwareInfo&, DType, int from, int to, const Dim& elements) = nullptr;
  /// Reduces the chunks received from `ranks` processes. Null if the hardware only runs graphs of one process.
  KernelContext::Built (*fold)(const HardwareInfo&, DType, ScalarOp combine, int received, int folded,
                               const Dim& elements, std::int64_t ranks) = nullptr;
  std::int64_t folded_bytes = 0;    ///< chunk size per process: Collective::Part::window; 0: no limit
  FusionOptions fusion = {};        ///< regions that the machine has schedules for
  RowChunks chunks = {};            ///< default of "chunk-rows"
  bool casts_before_views = false;  ///< runs the pass "cast-before-views"
  std::optional<PaddingLimits> padded_products = {};  ///< runs the pass "pad-products" with these limits
  void (*finish)(Program&) = nullptr;                 ///< last step of make_kernels(), such as kernel names
  /// Joins launches into phases of one kernel: Program::joined. Null: each launch is a kernel of its own.
  std::function<void(Program&)> join_launches = {};
  /// The most rows of a matmul for which it has a schedule that streams the weights, if the rows are a number.
  std::int64_t streamed_rows = 0;
  /// Values of a known size below this overwrite no others and are not overwritten, so that kernels in one launch
  /// need not wait for readers of older values.
  std::int64_t overwritten_bytes = 0;
  bool keeps_budgets = false;        ///< supports LowerOptions::memory
  std::vector<CodeStage> code = {};  ///< in order; the last one is the code that is loaded
};

}  // namespace lathe
