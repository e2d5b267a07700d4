#include "runtime/cpu/library/program_code.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/kernel/printer.h"
#include "ir/support/error.h"
#include "passes/memory/memory_planner.h"
#include "passes/program/program_loops.h"
#include "runtime/cpu/launch_groups.h"
#include "runtime/run/program_runner.h"

namespace lathe {

using codegen::LibraryBuffer;
using codegen::LibraryLaunch;
using codegen::LibraryProgram;
using codegen::LibrarySize;

LibrarySize library_size(const Dim& size, const LibraryPlan& plan) {
  LibrarySize result;
  for (const Dim::Term& term : size.terms()) {
    LibrarySize::Term product{term.coefficient, {}};
    for (const auto& [unknown, power] : term.monomial) {
      const auto dim = std::ranges::find(plan.dims, unknown, &LibraryDimension::name);
      LATHE_ASSERT(dim != plan.dims.end());
      product.dims.insert(product.dims.end(), static_cast<std::size_t>(power),
                          static_cast<int>(dim - plan.dims.begin()));
    }
    result.terms.push_back(std::move(product));
  }
  return result;
}

namespace {

/// Returns the sum of the positive terms of a size at the largest dims: no call has more. Throws UserError
/// [dim_overflow] if a part of the sum, or of the negative terms, does not fit 63 bits.
std::int64_t largest(const Dim& size, const DimBindings& most) {
  Dim positive = 0, negative = 0;
  for (const Dim::Term& term : size.terms()) {
    Dim product = 1;
    for (const auto& [unknown, power] : term.monomial)
      for (int i = 0; i < power; ++i) product = product * Dim(unknown);
    if (term.coefficient > 0)
      positive = positive + product * term.coefficient;
    else
      negative = negative + product * -term.coefficient;
  }
  negative.evaluate(most);
  return positive.evaluate(most);
}

class ProgramCode {
 public:
  ProgramCode(const LibraryPlan& plan, const LibraryFunction& function, std::size_t target)
      : plan_(plan), function_(function), program_(function.programs[target]) {
    for (const LibraryDimension& dim : plan.dims) most_[dim.name] = dim.most;
  }

  LibraryProgram take() { return std::move(code_); }

  void place_buffers(const std::map<std::string, std::int64_t>& offsets) {
    code_.buffers.resize(program_.buffers.size());
    int tensor = 0;
    for (const auto* slots : {&program_.inputs, &program_.outputs})
      for (const Program::Slot& slot : *slots)
        at(slot.buffer) = {.kind = LibraryBuffer::Kind::tensor, .number = tensor++};
    for (std::size_t i = 0; i < program_.states.size(); ++i) {
      const Program::Slot& slot = program_.states[i];
      if (function_.states[i] < 0)
        at(slot.buffer) = {.kind = LibraryBuffer::Kind::embedded, .offset = offsets.at(slot.name)};
      else
        at(slot.buffer) = {.kind = LibraryBuffer::Kind::tensor, .number = tensor++};
    }
    for (const auto& [buffer, value] : constant_tensors(program_)) {
      at(buffer) = {.kind = LibraryBuffer::Kind::constant, .number = static_cast<int>(code_.constants.size())};
      code_.constants.emplace_back(reinterpret_cast<const char*>(value.data()), value.bytes());
    }
    place_arena();
    place_scratch();
    for (std::size_t b = 0; b < program_.buffers.size(); ++b)
      if (const auto& slice = program_.buffers[b].slice)
        code_.buffers[b] = {
            .kind = LibraryBuffer::Kind::slice,
            .of = slice->of,
            .loop = slice->loop,
            .stride = size(slice->stride * static_cast<std::int64_t>(size_in_bytes(program_.buffers[b].dtype))),
            .is_reversed = slice->reverse};
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) code_.buffers[b].name = program_.buffers[b].name;
  }

  void add_launches(LibraryMessages& messages, std::vector<kernel::Kernel>& kernels,
                    std::map<std::string, int>& kernel_of) {
    std::vector<int> numbers;  // in the library
    for (const kernel::Kernel& kernel : program_.kernels) {
      const auto [entry, is_new] =
          kernel_of.try_emplace(kernel::canonical_text(kernel), static_cast<int>(kernels.size()));
      if (is_new) kernels.push_back(kernel);
      numbers.push_back(entry->second);
    }
    for (const Launch& launch : program_.launches) {
      LibraryLaunch& code = code_.launches.emplace_back();
      const kernel::Kernel& kernel = program_.kernels[launch.kernel];
      code.kernel = numbers[launch.kernel];
      code.buffers = launch.buffers;
      for (const Dim& dim : launch.dims) code.dims.push_back(size(dim));
      add_written(launch, kernel, code);
      code.work = size(launch.work);
      code.bytes = size(launch.bytes);
      for (const std::string& check : launch.checks)  // the words of check_status()
        code.errors.push_back(
            messages.add(fmt::format("{}: {}: {}", launch.loc.to_string(), checked_op(launch), check)));
    }
    for (const ProgramLoop& loop : program_.loops)
      code_.loops.push_back({loop.first, loop.end, size(loop.trips), loop.name});
  }

 private:
  LibraryBuffer& at(int buffer) { return code_.buffers[buffer]; }

  /// Checks that the size fits 63 bits in all calls.
  LibrarySize size(const Dim& dim) const {
    largest(dim, most_);
    return library_size(dim, plan_);
  }

  /// Plans the arena for the largest sizes, and the groups of launches that may run concurrently in it.
  void place_arena() {
    std::vector<std::int64_t> elements;
    for (const ProgramBuffer& buffer : program_.buffers)
      elements.push_back(buffer.kind == ProgramBuffer::Kind::scratch ? 0 : largest(buffer.elements, most_));
    MemoryPlanner planner(program_);
    const MemoryPlan& plan = planner.plan(elements);
    for (const MemoryPlan::Block& block : plan.blocks)
      at(block.buffer) = {.kind = LibraryBuffer::Kind::arena, .offset = block.offset};
    code_.arena_bytes = plan.arena_bytes;
    for (const LaunchGroup& group : LaunchGrouping(program_).groups(plan))
      code_.groups.push_back({group.first, group.last, program_.launches[group.first].part_of >= 0});
  }

  /// Scratch buffers of one launch come one after the other; those of different launches share memory.
  void place_scratch() {
    std::map<int, std::int64_t> end_of;
    std::int64_t all = 0;
    for (const Launch& launch : program_.launches) {
      std::int64_t end = 0;
      for (const int b : launch.buffers)
        if (const auto known = end_of.find(b); known != end_of.end()) end = std::max(end, known->second);
      for (const int b : launch.buffers) {
        const ProgramBuffer& buffer = program_.buffers[b];
        if (buffer.kind != ProgramBuffer::Kind::scratch || end_of.contains(b)) continue;
        at(b) = {.kind = LibraryBuffer::Kind::scratch, .offset = end};
        end += aligned_bytes(buffer.dtype, largest(buffer.elements, most_));
        end_of[b] = end;
        all = std::max(all, end);
      }
    }
    code_.scratch_bytes = all == 0 ? 0 : scratch_stride(all);
  }

  /// Adds the sizes of what a launch writes, unless one of them is never 0.
  void add_written(const Launch& launch, const kernel::Kernel& kernel, LibraryLaunch& code) const {
    for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
      const ProgramBuffer& buffer = program_.buffers[launch.buffers[i]];
      if (kernel.buffers[i].access == kernel::Access::read || buffer.kind == ProgramBuffer::Kind::scratch) continue;
      if (const auto elements = buffer.elements.value(); elements && *elements > 0) {
        code.written.clear();
        return;
      }
      code.written.push_back(size(buffer.elements));
    }
    if (code.written.empty()) code.written.push_back(size(0));  // it writes nothing
  }

  const LibraryPlan& plan_;
  const LibraryFunction& function_;
  const Program& program_;
  DimBindings most_;
  LibraryProgram code_;
};

}  // namespace

LibraryProgram program_code(const LibraryPlan& plan, const LibraryFunction& function, std::size_t target,
                            const std::map<std::string, std::int64_t>& offsets, LibraryMessages& messages,
                            std::vector<kernel::Kernel>& kernels, std::map<std::string, int>& kernel_of) {
  ProgramCode code(plan, function, target);
  code.place_buffers(offsets);
  code.add_launches(messages, kernels, kernel_of);
  return code.take();
}

}  // namespace lathe
