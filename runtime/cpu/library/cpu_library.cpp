#include "runtime/cpu/library/cpu_library.h"

#include <fmt/core.h>

#include <algorithm>

#include "codegen/llvm/library/cpu/cpu_check.h"
#include "runtime/cpu/launch_groups.h"
#include "runtime/cpu/library/cpu_header.h"
#include "runtime/cpu/task_sizes.h"
#include "runtime/library/library_builder.h"

namespace lathe {

namespace {

class CpuMachine final : public LibraryMachine {
 public:
  std::string no_level_message(const std::string& prefix) const override {
    return fmt::format("this CPU supports none of the levels that {} was compiled for", prefix);
  }
  std::vector<std::string> own_messages() const override {
    return {"workers need a function parallel_for and a count of 1 or more"};
  }

  std::vector<codegen::LibraryGroup> groups(const Program& program, const MemoryPlan& plan) const override {
    std::vector<codegen::LibraryGroup> groups;
    for (const LaunchGroup& group : LaunchGrouping(program).groups(plan))
      groups.push_back({group.first, group.last, program.launches[group.first].part_of >= 0});
    return groups;
  }

  void choose_kernels(const Program& program, const Launch& launch, std::size_t, const DimBindings&,
                      LibraryKernels& kernels, codegen::LibraryLaunch& code) const override {
    code.kernel = kernels.add(program, launch.kernel);
  }
};

/// Returns whether each CPU that runs code for `earlier` also runs code for `later`.
bool covers(const codegen::TargetCpu& later, const codegen::TargetCpu& earlier) {
  const std::vector<codegen::CpuidBits> known = codegen::needs_of(earlier);
  const auto is_known = [&](const codegen::CpuidBits& need) {
    return std::ranges::any_of(known, [&](const codegen::CpuidBits& bits) {
      return bits.leaf == need.leaf && bits.subleaf == need.subleaf && bits.result == need.result &&
             (need.mask & ~bits.mask) == 0;
    });
  };
  return std::ranges::all_of(codegen::needs_of(later), is_known) &&
         (codegen::saved_registers_of(later) & ~codegen::saved_registers_of(earlier)) == 0;
}

codegen::Library code_of(const LibraryPlan& plan) {
  std::vector<codegen::LibraryLevel> levels;
  for (const std::string& name : plan.targets)
    levels.push_back({level_symbol(name), codegen::testable(codegen::TargetCpu::named(name))});
  require_used_targets(plan.targets, [&](std::size_t later, std::size_t earlier) {
    return covers(levels[later].target, levels[earlier].target);
  });
  codegen::Library code = library_code(plan, CpuMachine(), std::move(levels));
  const TaskSizes sizes;
  code.tasks = {.byte_work = sizes.byte_work,
                .least_chunk_work = sizes.least_chunk_work,
                .heavy_work = sizes.heavy_work,
                .light_chunks = sizes.light_chunks,
                .heavy_chunks = sizes.heavy_chunks,
                .together_work = sizes.together_work};
  return code;
}

}  // namespace

EmittedLibrary emit_cpu_library(const LibraryPlan& plan) {
  EmittedLibrary library = library_objects(code_of(plan), plan.threads);
  library.init = plan.init;
  library.header = {plan.prefix + ".h", c_header(plan, CpuHeader(plan))};
  return library;
}

std::string cpu_driver_text(const LibraryPlan& plan) { return codegen::driver_text(code_of(plan), 0); }

}  // namespace lathe
