#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor/interpret/interpreter.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/attention/variant.h"
#include "tests/support/program_interpreter.h"

/// What tests of attention by the warpgroups of sm_90a have in common.
namespace lathe::test {

/// As lowered for sm_90a, all attentions fused.
ProgramInterpreter fused_by_wgmma(const ir::Graph& graph);

/// The kernel that runs the rows of an attention by warpgroups, its products over columns where their rows'
/// reductions are known, those over rows; or null.
const kernel::Kernel* rows_by_wgmma(const ProgramInterpreter& program);
const kernel::Kernel* outputs_of_rows_by_wgmma(const ProgramInterpreter& program);
const kernel::Kernel* columns_by_wgmma(const ProgramInterpreter& program);

/// The error is at most twice that of the products and softmax one by one, in the same dtype.
void check_attention(const ir::Graph& graph, const Tensors& arguments, const ProgramInterpreter& program,
                     const ProgramInterpreter::RunKernel& run = {});

/// An attention of so many rows; across, of 131 columns.
struct WgmmaCase {
  const char* what;
  PatternVariant variant;
  std::int64_t depth = 16, values = 16, length = 150;
};
/// Of each the kernel that warpgroups run, by the kernel interpreter; and of one row, of none, over no columns.
using MakeGraph = std::function<ir::Graph(const PatternVariant&, std::int64_t depth, std::int64_t values)>;
void check_cases(std::span<const WgmmaCase> cases, const MakeGraph& make,
                 const kernel::Kernel* (*kernel_of)(const ProgramInterpreter&));

/// One head, [S, d], with a padding mask.
inline const PatternVariant causal_and_padded = {
    .layout = Layout::flat, .mask = Mask::both_and, .types = Types::bf16};
/// Of that variant with heads of 16, 300 rows by the CUDA text: where the first columns, as many as `padded` says,
/// are masked for all rows; and where the last element of these inputs is huge, infinite or NaN.
void check_left_out(const ir::Graph& graph, const ProgramInterpreter& program,
                    const std::vector<std::int64_t>& padded, const std::vector<std::string>& inputs);

/// NVRTC makes wgmma, TMA and mbarriers of them, no other tensor core instructions, no spills, and registers are
/// shared out anew. SKIP where there is no NVRTC.
void check_resources(std::span<const kernel::Kernel> kernels);

}  // namespace lathe::test
