#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/tensor/interpret/interpreter.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/attention/variants/variant.h"
#include "tests/support/programs/program_interpreter.h"

/// Shared code for tests of attention by the warpgroups of sm_90a.
namespace lathe::test {

/// Lowers a graph for sm_90a with all attentions fused: long rows in turns, or all rows.
ProgramInterpreter fused_by_wgmma(const ir::Graph& graph);
ProgramInterpreter fused_in_turns(const ir::Graph& graph);

/// Return the kernel that runs an attention by warpgroups: the rows, in turns or not; the rows in turns; the row
/// outputs when the rows' reductions are known; the column outputs likewise. Null if there is none.
const kernel::Kernel* rows_by_wgmma(const ProgramInterpreter& program);
const kernel::Kernel* rows_in_turns(const ProgramInterpreter& program);
const kernel::Kernel* outputs_of_rows_by_wgmma(const ProgramInterpreter& program);
const kernel::Kernel* columns_by_wgmma(const ProgramInterpreter& program);
/// Returns the kernel of all outputs when the rows' reductions are known; null if there is none.
const kernel::Kernel* gradients_by_wgmma(const ProgramInterpreter& program);

/// Checks that the error is at most twice that of separate matmuls and softmax in the same dtype.
void check_attention(const ir::Graph& graph, const Tensors& arguments, const ProgramInterpreter& program,
                     const ProgramInterpreter::RunKernel& run = {});

/// An attention with this number of rows; cross-attention has 131 columns.
struct WgmmaCase {
  const char* what;
  PatternVariant variant;
  std::int64_t depth = 16, values = 16, length = 150;
};
/// Runs the warpgroup kernel of each case in the kernel interpreter, also for one row, no rows and no columns.
using MakeGraph = std::function<ir::Graph(const PatternVariant&, std::int64_t depth, std::int64_t values)>;
void check_cases(std::span<const WgmmaCase> cases, const MakeGraph& make,
                 const kernel::Kernel* (*kernel_of)(const ProgramInterpreter&),
                 ProgramInterpreter (*lower)(const ir::Graph&) = fused_by_wgmma);

/// Runs the CUDA text of each case with T = `columns`: results are close to those of the unfused graph, and have the
/// same bits for `repeats` further orders of blocks and threads.
void check_cuda_text(std::span<const WgmmaCase> cases, const MakeGraph& make, std::int64_t columns, int repeats);

/// One head, [S, d], causal with a padding mask.
inline const PatternVariant causal_and_padded = {
    .layout = Layout::flat, .mask = Mask::both_and, .types = Types::bf16};
/// Runs the CUDA text of that variant with heads of 16 and 300 rows. For each count in `padded`, that many leading
/// columns are masked for all rows. For each name in `inputs`, the last element is huge, infinite or NaN.
void check_left_out(const ir::Graph& graph, const ProgramInterpreter& program,
                    const std::vector<std::int64_t>& padded, const std::vector<std::string>& inputs);

/// Checks that NVRTC compiles the kernels to wgmma, TMA and mbarriers without other tensor core instructions or
/// spills, and that they redistribute registers. Prints SKIP without NVRTC.
void check_resources(std::span<const kernel::Kernel> kernels);

}  // namespace lathe::test
