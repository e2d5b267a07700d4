#include "runtime/library/program_code.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "passes/memory/memory_planner.h"
#include "passes/program/program_loops.h"
#include "runtime/library/split_packing.h"
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

/// Returns an upper bound of a size in all calls, at least 0.
std::int64_t most_elements(const Dim& size, const DimBindings& most) {
  return std::max<std::int64_t>(0, bounds_of(size, most).most);
}

class ProgramCode {
 public:
  ProgramCode(const LibraryPlan& plan, const LibraryFunction& function, std::size_t target, const LevelCode& level)
      : plan_(plan), function_(function), program_(function.programs[target]), target_(target), level_(level) {
    for (const LibraryDimension& dim : plan.dims) most_[dim.name] = dim.most;
  }

  LibraryProgram take() { return std::move(code_); }

  void place_buffers() {
    code_.buffers.resize(program_.buffers.size());
    int tensor = 0;
    for (const auto* slots : {&program_.inputs, &program_.outputs})
      for (const Program::Slot& slot : *slots) {
        if (slot.name == packed_weights)
          for (const auto& [buffer, place] : places_in_packed(program_))  // none for an input of the graph
            at(buffer) = {.kind = LibraryBuffer::Kind::tensor, .number = tensor, .offset = place};
        at(slot.buffer) = {.kind = LibraryBuffer::Kind::tensor, .number = tensor++};
      }
    for (std::size_t i = 0; i < program_.states.size(); ++i) {
      const Program::Slot& slot = program_.states[i];
      if (function_.states[i] < 0)
        at(slot.buffer) = {.kind = LibraryBuffer::Kind::embedded, .offset = level_.weights.place_of(slot.name)};
      else
        at(slot.buffer) = {.kind = LibraryBuffer::Kind::tensor, .number = tensor++};
    }
    for (const auto& [buffer, value] : constant_tensors(program_)) {
      if (level_.machine.stores_constants()) {
        at(buffer) = {.kind = LibraryBuffer::Kind::embedded, .offset = level_.weights.add_constant(value)};
        continue;
      }
      at(buffer) = {.kind = LibraryBuffer::Kind::constant, .number = static_cast<int>(code_.constants.size())};
      code_.constants.emplace_back(reinterpret_cast<const char*>(value.data()), value.bytes());
    }
    place_arena();
    if (level_.machine.has_workers()) place_scratch();
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

  void add_launches() {
    std::vector<int> number_of;  // by launch of the program, and for its end
    auto joined = program_.joined.begin();
    const int count = static_cast<int>(program_.launches.size());
    for (int l = 0; l < count; ++l) {
      number_of.push_back(static_cast<int>(code_.launches.size()));
      if (joined == program_.joined.end() || !joined->contains(l)) {
        add_launch(program_.launches[l]);
        add_errors(program_.launches[l]);
        continue;
      }
      if (l == joined->first) add_launch(joined->launch);
      add_errors(program_.launches[l]);  // each phase has the codes after those of the earlier ones
      if (l + 1 == joined->end) ++joined;
    }
    number_of.push_back(static_cast<int>(code_.launches.size()));
    for (const ProgramLoop& loop : program_.loops)
      code_.loops.push_back({number_of[loop.first], number_of[loop.end], size(loop.trips), loop.name});
  }

 private:
  void add_launch(const Launch& launch) {
    LibraryLaunch& code = code_.launches.emplace_back();
    const kernel::Kernel& kernel = program_.kernels[launch.kernel];
    level_.machine.choose_kernels(program_, launch, target_, most_, level_.kernels, code);
    code.has_phases = !kernel.phase_kernels.empty();
    code.buffers = launch.buffers;
    for (const Dim& dim : launch.dims) code.dims.push_back(size(dim));
    add_written(launch, kernel, code);
    if (const auto& condition = launch.condition)
      code.condition = {size(condition->size), condition->limit, condition->is_below};
    code.work = size(launch.work);
    code.bytes = size(launch.bytes);
  }

  /// Adds the errors of a launch's checks to the last launch.
  void add_errors(const Launch& launch) {
    for (const std::string& check : launch.checks)  // the words of check_status()
      code_.launches.back().errors.push_back(
          level_.messages.add(fmt::format("{}: {}: {}", launch.loc.to_string(), checked_op(launch), check)));
  }

  LibraryBuffer& at(int buffer) { return code_.buffers[buffer]; }

  /// Checks that the size fits 63 bits in all calls.
  LibrarySize size(const Dim& dim) const {
    most_elements(dim, most_);
    return library_size(dim, plan_);
  }

  /// Plans the arena for the largest sizes, and the groups of launches that may run concurrently in it.
  void place_arena() {
    std::vector<std::int64_t> elements;
    for (const ProgramBuffer& buffer : program_.buffers)
      elements.push_back(buffer.kind == ProgramBuffer::Kind::scratch && level_.machine.has_workers()
                             ? 0
                             : most_elements(buffer.elements, most_));
    MemoryPlanner planner(program_);
    const MemoryPlan& plan = planner.plan(elements);
    for (const MemoryPlan::Block& block : plan.blocks)
      at(block.buffer) = {.kind = LibraryBuffer::Kind::arena, .offset = block.offset};
    code_.arena_bytes = plan.arena_bytes;
    code_.groups = level_.machine.groups(program_, plan);
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
        end += aligned_bytes(buffer.dtype, most_elements(buffer.elements, most_));
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
  std::size_t target_;
  const LevelCode& level_;
  DimBindings most_;
  LibraryProgram code_;
};

}  // namespace

LibraryProgram program_code(const LibraryPlan& plan, const LibraryFunction& function, std::size_t target,
                            const LevelCode& level) {
  ProgramCode code(plan, function, target, level);
  code.place_buffers();
  code.add_launches();
  return code.take();
}

}  // namespace lathe
