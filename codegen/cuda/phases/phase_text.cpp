#include "codegen/cuda/phases/phase_text.h"

#include <fmt/core.h>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/names.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::cuda {

using kernel::Kernel;
using kernel::Loop;
using kernel::Opcode;
using kernel::ValueId;

namespace {

/// Returns the expression of an integer that follows from dims, in 64 bits.
Expression from_dims(const Kernel& kernel, ValueId id, std::span<const std::string> dims) {
  const kernel::Instruction& in = value(kernel, id);
  if (in.op == Opcode::constant) return {constant_text(in)};
  if (in.op == Opcode::dim) return {dims[static_cast<std::size_t>(in.integer)]};
  if (in.op != Opcode::scalar || in.type.lanes != 1)
    throw InternalError(fmt::format(
        "kernel {}: the bounds of a block loop do not follow from the dims  [block_bounds]", kernel.name));
  std::vector<Expression> args;
  for (const ValueId arg : in.args) args.push_back(from_dims(kernel, arg, dims));
  return expression(kernel, in, args);
}

/// Returns the number of blocks along an axis: that of the longest block loop, and at least 1.
std::string blocks_along(const Kernel& kernel, std::size_t axis, std::span<const std::string> dims) {
  std::int64_t known = 1;
  std::string text;
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (!loop || !is_block(loop->kind) || axis_of(loop->kind) != axis) return;
    if (const std::int64_t trips = constant_trip_count(kernel, *loop); trips >= 0) {
      known = std::max(known, trips);
      return;
    }
    const auto bound = [&](ValueId id) { return from_dims(kernel, id, dims).text; };
    const std::string trips =
        fmt::format("block_count({}, {}, {})", bound(loop->lo), bound(loop->hi), bound(loop->step));
    text = text.empty() ? trips : fmt::format("max({}, {})", text, trips);
  });
  return text.empty() ? std::to_string(known) : fmt::format("max({}, {}LL)", text, known);
}

int axes_of(const Kernel& kernel) {
  std::size_t axes = 1;
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (loop && is_block(loop->kind)) axes = std::max(axes, axis_of(loop->kind) + 1);
  });
  return static_cast<int>(axes);
}

/// Returns the type of a buffer that a kernel gets, or a function that runs a phase of it.
std::string parameter_type(const Kernel& kernel, int number, const kernel::KernelPhase* phase) {
  const kernel::BufferInfo& buffer = kernel.buffers[static_cast<std::size_t>(number)];
  const std::string element =
      fmt::format("{}{}", buffer.access == kernel::Access::read ? "const " : "", name(buffer.dtype));
  if (phase && phase->awaits(static_cast<std::size_t>(number))) return fmt::format("const Awaited<{}>", element);
  return element + (buffer.noalias && kernel.phase_kernels.empty() ? "* __restrict__" : "*");
}

}  // namespace

std::string phase_block_text(const Kernel& phase, const PhaseMapping& mapping, int block_threads,
                             std::span<const std::string> dims) {
  const auto [x, y, z] = mapping.threads;
  return fmt::format("PhaseBlock<{}, {}, {}, {}, {}, {}, {}, {}> phase(first, {}, {}, {})", x, y, z, mapping.held,
                     mapping.at_once, block_threads, mapping.shared_bytes, axes_of(phase),
                     blocks_along(phase, 0, dims), blocks_along(phase, 1, dims), blocks_along(phase, 2, dims));
}

std::string parameter_list(const Kernel& kernel, const kernel::KernelPhase* phase,
                           std::span<const std::string> buffers, std::span<const std::string> dims,
                           std::span<const std::string> maps) {
  std::string list;
  for (int i = 0; i < kernel.parameter_count(); ++i)
    list += fmt::format("{} {}, ", parameter_type(kernel, i, phase), buffers[static_cast<std::size_t>(i)]);
  for (const std::string& dim : dims) list += fmt::format("const i64 {}, ", dim);
  list += "u64* const status";
  for (const std::string& map : maps) list += fmt::format(", const __grid_constant__ TensorMap {}", map);
  return list;
}

}  // namespace lathe::cuda
