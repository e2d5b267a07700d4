#include "passes/gpu/join/joined_kernel.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/gpu/grid/grid_phases.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/verify/verifier.h"

namespace lathe::gpu {

using kernel::Access;

namespace {

constexpr std::size_t most_arguments = 500;         ///< of 8 bytes; a kernel of CUDA 12.0 has up to 4096 bytes
constexpr std::int64_t short_bytes = 256 << 10;     ///< memory traffic of a phase that one or a few blocks run
constexpr std::int64_t most_cache_bytes = 4 << 20;  ///< of a cache that are prefetched: a part of the window

}  // namespace

bool JoinedKernel::has_room_for(const Launch& launch) const {
  std::set<int> added;
  for (const int buffer : launch.buffers)
    if (!parameters_.contains(buffer)) added.insert(buffer);
  return kernel_.buffers.size() + kernel_.dims.size() + added.size() + launch.dims.size() < most_arguments;
}

kernel::BufferId JoinedKernel::parameter(int buffer, const kernel::BufferInfo& info) {
  const auto [at, is_new] = parameters_.try_emplace(buffer, static_cast<int>(kernel_.buffers.size()));
  if (is_new) {
    kernel_.buffers.push_back({.name = fmt::format("b{}", at->second), .dtype = info.dtype, .access = info.access});
    launch_.buffers.push_back(buffer);
  }
  Access& access = kernel_.buffers[at->second].access;
  access = both(access, info.access);
  return at->second;
}

kernel::ValueId JoinedKernel::dim(const Dim& size) {
  kernel::Instruction in{.op = kernel::Opcode::constant, .type = {i64, 1}};
  if (const auto number = size.value()) {
    in.integer = *number;
  } else {
    const auto at = std::ranges::find(launch_.dims, size);
    in.op = kernel::Opcode::dim;
    in.integer = at - launch_.dims.begin();
    if (at == launch_.dims.end()) {
      launch_.dims.push_back(size);
      kernel_.dims.push_back(fmt::format("d{}", in.integer));
    }
  }
  const auto same = [&](const kernel::Instruction& known) {
    return known.op == in.op && known.integer == in.integer;
  };
  const auto known = std::ranges::find_if(kernel_.values, same);
  if (known != kernel_.values.end()) return static_cast<kernel::ValueId>(known - kernel_.values.begin());
  kernel_.values.push_back(std::move(in));
  return static_cast<kernel::ValueId>(kernel_.values.size()) - 1;
}

void JoinedKernel::put(kernel::Instruction instruction) {
  kernel_.values.push_back(std::move(instruction));
  kernel_.body.push_back({kernel::Compute{static_cast<kernel::ValueId>(kernel_.values.size()) - 1}});
}

void JoinedKernel::add(const Launch& launch) {
  const kernel::Kernel& run = program_.kernels[launch.kernel];
  const auto [at, is_new] = phase_kernels_.try_emplace(launch.kernel, static_cast<int>(kernel_.phase_kernels.size()));
  if (is_new) kernel_.phase_kernels.push_back(std::make_shared<const kernel::Kernel>(run));
  kernel::KernelPhase phase{.kernel = at->second, .code = checks_};
  for (std::size_t p = 0; p < launch.buffers.size(); ++p)
    phase.buffers.push_back({parameter(launch.buffers[p], run.buffers[p]), run.buffers[p].access});
  for (const Dim& size : launch.dims) phase.dims.push_back(dim(size));
  note_accesses(launch, phase);
  phases_.push_back(std::move(phase));
  note_weights(launch);
  checks_ += static_cast<std::int64_t>(launch.checks.size());
  launch_.flops = launch_.flops + launch.flops;
  launch_.bytes = launch_.bytes + launch.bytes;
}

void JoinedKernel::note_accesses(const Launch& launch, const kernel::KernelPhase& phase) {
  const kernel::Kernel& run = program_.kernels[launch.kernel];
  const auto traffic = launch.bytes.value();
  PhaseAccesses made{.of = {}, .may_be_late = traffic && *traffic <= short_bytes};
  for (std::size_t p = 0; p < phase.buffers.size(); ++p)
    made.of.push_back({.buffer = phase.buffers[p].id,
                       .access = phase.buffers[p].access,
                       .can_be_awaited = can_be_awaited(run, p) && !launch.leaves_remainder(static_cast<int>(p)),
                       .loads = loads_of_thread(run, static_cast<kernel::BufferId>(p))});
  accesses_.push_back(std::move(made));
}

/// Notes the parameters and constants of a known size that the launch reads completely: its memory traffic is at
/// least their bytes. A lookup in a table has less. Notes the rows in use of caches too.
void JoinedKernel::note_weights(const Launch& launch) {
  for (const RowsRead& read : launch.rows_read) note_rows(launch, read);
  const auto traffic = launch.bytes.value();
  const kernel::Kernel& run = program_.kernels[launch.kernel];
  for (std::size_t p = 0; p < launch.buffers.size() && traffic; ++p) {
    const ProgramBuffer& buffer = program_.buffers[launch.buffers[p]];
    const auto elements = buffer.elements.value();
    const auto bytes = static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
    const bool stays = buffer.kind == ProgramBuffer::Kind::state || buffer.kind == ProgramBuffer::Kind::constant;
    if (stays && run.buffers[p].access == Access::read && elements && *elements * bytes <= *traffic)
      streams_.push_back({static_cast<int>(phases_.size()) - 1, parameters_.at(launch.buffers[p]), *elements, bytes});
  }
}

void JoinedKernel::note_rows(const Launch& launch, const RowsRead& read) {
  const int buffer = launch.buffers[static_cast<std::size_t>(read.parameter)];
  if (program_.buffers[buffer].kind != ProgramBuffer::Kind::state) return;
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(program_.buffers[buffer].dtype));
  const std::int64_t elements = nominal_size(read.count * read.rows, late_length);
  streams_.push_back({static_cast<int>(phases_.size()) - 1, parameters_.at(buffer),
                      std::min(elements, most_cache_bytes / bytes), bytes, read});
}

PrefetchPlan JoinedKernel::prefetches(std::int64_t window) const {
  std::vector<StreamedBuffer> weights;
  for (const StreamedBuffer& stream : streams_)
    if (stream.rows || kernel_.buffers[stream.buffer].access == Access::read) weights.push_back(stream);
  return {std::move(weights), window};
}

PhasePlan JoinedKernel::plan() const {
  std::vector<bool> is_temporary(kernel_.buffers.size());
  for (const auto& [buffer, parameter] : parameters_)
    is_temporary[static_cast<std::size_t>(parameter)] =
        program_.buffers[buffer].kind == ProgramBuffer::Kind::temporary;
  return plan_phases(accesses_, is_temporary);
}

/// Clears the buffers whose elements phases await.
void JoinedKernel::clear(const std::vector<int>& buffers) {
  for (const int buffer : buffers)
    put(kernel::GridClear{buffer, dim(program_.buffers[launch_.buffers[static_cast<std::size_t>(buffer)]].elements)}
            .instruction());
}

kernel::Instruction JoinedKernel::prefetch_of(const PrefetchPlan::Range& range) {
  if (!range.rows) return kernel::GridPrefetch{range.buffer, dim(range.first), dim(range.count)}.instruction();
  const RowsRead& rows = *range.rows;
  return kernel::GridPrefetchRows{range.buffer,   dim(rows.first),  dim(rows.count),
                                  dim(rows.rows), dim(rows.stride), range.count}
      .instruction();
}

/// Adds the kernel to the program, or returns one that differs only in names: identical layers share it.
int JoinedKernel::add_kernel(Program& program, JoinedKernels& known) {
  const auto number = static_cast<int>(program.kernels.size());
  const auto [same, is_new] = known.try_emplace(kernel::canonical_text(kernel_), number);
  if (!is_new) return same->second;
  const int last = first_ + static_cast<int>(phases_.size()) - 1;
  kernel_.name = fmt::format("k{}_phases_{}_to_{}", number, first_, last);
  kernel_.notes.push_back(fmt::format("launches {} to {}", first_, last));
  kernel::verify(kernel_);
  program.kernels.push_back(std::move(kernel_));
  return number;
}

Launch JoinedKernel::finish(Program& program, JoinedKernels& known, std::int64_t window) && {
  PrefetchPlan weights = prefetches(window);
  const auto prefetch = [&](int before) {
    for (const PrefetchPlan::Range& range : weights.before(before)) put(prefetch_of(range));
  };
  const PhasePlan all = plan();
  clear(all.cleared);
  if (!all.cleared.empty()) {
    prefetch(0);
    put(kernel::GridBarrier().instruction());
  }
  int next = 0;  // phases with a lower number are late ones, which read no weights
  for (const PlannedPhase& each : all.phases) {
    kernel::KernelPhase phase = phases_[static_cast<std::size_t>(each.phase)];
    phase.awaited = each.awaited;
    if (each.phase >= next && (each.follows_barrier || each.awaited != 0)) prefetch(each.phase);
    if (each.follows_barrier) put(kernel::GridBarrier().instruction());
    put(kernel::RunPhase{std::move(phase)}.instruction());
    next = std::max(next, each.phase + 1);
  }
  launch_.info.role = KernelRole::phases;
  launch_.kernel = add_kernel(program, known);
  return std::move(launch_);
}

}  // namespace lathe::gpu
