#include "codegen/cuda/index/index_width.h"

#include <algorithm>

#include "codegen/cuda/index/ranges.h"
#include "ir/kernel/phases.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::cuda {

namespace {

constexpr Range small_dims{0, 16};

/// Small ranges for all dims, except those used in bit operations: these are salts, not sizes, and may be any number.
std::vector<Range> small_sizes(const kernel::Kernel& kernel) {
  std::vector<Range> sizes(kernel.dims.size(), small_dims);
  for (const kernel::Instruction& in : kernel.values) {
    if (in.scalar_op != ScalarOp::bit_and && in.scalar_op != ScalarOp::bit_or && in.scalar_op != ScalarOp::bit_xor)
      continue;
    for (const kernel::ValueId arg : in.args)
      if (const auto& from = kernel.values[arg]; from.op == kernel::Opcode::dim) sizes[from.integer] = {};
  }
  return sizes;
}

IndexWidths widths_for(const kernel::Kernel& kernel, const GpuInfo& gpu, const std::vector<Range>& dims) {
  const Ranges all = ranges(kernel, gpu, dims);
  IndexWidths widths;
  for (std::size_t i = 0; i < kernel.values.size(); ++i) {
    const kernel::Instruction& in = kernel.values[i];
    bool fits_int32 = in.type.scalar == i64 && all.values[i].fits_32_bits();
    if (in.op == kernel::Opcode::loop_index) fits_int32 = fits_int32 && all.counters[i].fits_32_bits();
    widths.values.push_back(fits_int32);
  }
  for (std::size_t i = 0; i < kernel.vars.size(); ++i)
    widths.vars.push_back(kernel.vars[i].type.scalar == i64 && all.vars[i].fits_32_bits());
  return widths;
}

std::vector<bool> run_once(const kernel::Kernel& kernel, const GpuInfo& gpu) {
  const Ranges all = ranges(kernel, gpu, std::vector<Range>(kernel.dims.size()));
  const auto of = [&](kernel::ValueId id) { return all.values[id]; };
  std::vector<bool> once(kernel.values.size(), false);
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const auto* loop = std::get_if<kernel::Loop>(&s.node);
    if (!loop) return;
    const Range length = range_of(ScalarOp::sub, of(loop->hi), of(loop->lo));
    once[loop->index] = length.hi <= of(loop->step).lo;
  });
  return once;
}

/// Returns whether every entry that is set in `a` is set in `b`.
bool implies(const std::vector<bool>& a, const std::vector<bool>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](bool x, bool y) { return !x || y; });
}

}  // namespace

IndexWidths index_widths(const kernel::Kernel& kernel, const GpuInfo& gpu, Indices indices) {
  IndexWidths widths = widths_for(
      kernel, gpu, indices == Indices::int32 ? small_sizes(kernel) : std::vector<Range>(kernel.dims.size()));
  widths.once = run_once(kernel, gpu);
  return widths;
}

bool int32_suffices(const kernel::Kernel& kernel, const GpuInfo& gpu, std::span<const std::int64_t> dims) {
  std::vector<Range> bound;
  for (const std::int64_t d : dims) bound.push_back({d, d});
  return int32_suffices(kernel, gpu, bound);
}

bool int32_suffices(const kernel::Kernel& kernel, const GpuInfo& gpu, std::span<const Range> dims) {
  const auto suffices = [&](const kernel::KernelPhase& phase) {
    const std::vector<Range> own = phase.dims_given(
        kernel, [&](std::int64_t dim) { return dims[static_cast<std::size_t>(dim)]; },
        [](std::int64_t n) { return Range{n, n}; });
    return int32_suffices(*kernel.phase_kernels[phase.kernel], gpu, own);
  };
  if (!kernel.phase_kernels.empty()) return std::ranges::all_of(kernel::phases_of(kernel), suffices);
  if (dims.empty()) return true;
  const IndexWidths wanted = widths_for(kernel, gpu, small_sizes(kernel)),
                    given = widths_for(kernel, gpu, {dims.begin(), dims.end()});
  return implies(wanted.values, given.values) && implies(wanted.vars, given.vars);
}

}  // namespace lathe::cuda
