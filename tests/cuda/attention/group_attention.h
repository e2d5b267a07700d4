#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor/interpreter.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/attention/spelling.h"
#include "tests/support/program_interpreter.h"

/// What tests of attention by the warp groups of sm_90a have in common.
namespace lathe::test {

/// As lowered for sm_90a, all attentions fused.
ProgramInterpreter fused_by_groups(const ir::Graph& graph);

/// The kernel that runs the rows of an attention by warp groups, its products over columns where their rows'
/// reductions are known, those over rows; or null.
const kernel::Kernel* rows_by_groups(const ProgramInterpreter& program);
const kernel::Kernel* ends_of_rows_by_groups(const ProgramInterpreter& program);
const kernel::Kernel* columns_by_groups(const ProgramInterpreter& program);

/// The error is at most twice that of the products and softmax one by one, in the same dtype.
void check_attention(const ir::Graph& graph, const ir::Tensors& arguments, const ProgramInterpreter& program,
                     const ProgramInterpreter::RunKernel& run = {});

/// An attention of so many rows; across, of 131 columns.
struct GroupCase {
  const char* what;
  Spelling spelling;
  std::int64_t depth = 16, values = 16, length = 150;
};
/// Of each the kernel that warp groups run, by the kernel interpreter; and of one row, of none, over no columns.
using MakeGraph = std::function<ir::Graph(const Spelling&, std::int64_t depth, std::int64_t values)>;
void check_cases(std::span<const GroupCase> cases, const MakeGraph& make,
                 const kernel::Kernel* (*kernel_of)(const ProgramInterpreter&));

/// One head, [S, d], with a padding mask.
inline const Spelling causal_and_padded = {.layout = Layout::flat, .mask = Mask::both_and, .types = Types::bf16};
/// Of that spelling with heads of 16, 300 rows by the CUDA text: where the first columns, as many as `padded` says,
/// are masked for all rows; and where the last element of these inputs is huge, infinite or NaN.
void check_left_out(const ir::Graph& graph, const ProgramInterpreter& program,
                    const std::vector<std::int64_t>& padded, const std::vector<std::string>& inputs);

/// NVRTC makes wgmma, TMA and mbarriers of them, no other tensor core instructions, no spills, and registers are
/// shared out anew. SKIP where there is no NVRTC.
void check_resources(std::span<const kernel::Kernel> kernels);

}  // namespace lathe::test
