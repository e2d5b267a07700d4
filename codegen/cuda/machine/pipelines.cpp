#include "codegen/cuda/machine/pipelines.h"

#include <algorithm>

#include <fmt/core.h>

#include "codegen/cuda/prelude/prelude.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::cuda {

PipelineRole::PipelineRole(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline)
    : copied_by_all(kernel::copies_by_all(kernel, pipeline)),
      kernel_(kernel),
      needs_(kernel::needs_of_producer(kernel, pipeline)),
      consumers_(pipeline.consumers) {}

bool PipelineRole::takes_part(const kernel::Statement& s) const {
  if (!produces || in_stage) return true;
  if (const auto* set = std::get_if<kernel::SetVar>(&s.node)) return needs_.vars[static_cast<std::size_t>(set->var)];
  const auto* compute = std::get_if<kernel::Compute>(&s.node);
  if (!compute) return kernel::leads_to_stage(s);
  return needs_.values[static_cast<std::size_t>(compute->value)] ||
         kernel::is_told_to_producers(kernel::value(kernel_, compute->value));
}

std::string PipelineRole::barrier() const { return fmt::format("consumer_barrier<{}>();", consumers_); }

const PipelineRole& pipeline_role(const RegionRole* role) {
  const auto* of_pipeline = dynamic_cast<const PipelineRole*>(role);
  LATHE_ASSERT(of_pipeline);
  return *of_pipeline;
}

namespace {

/// Whether consumers tell the producers something.
bool tells_producers(const kernel::Kernel& kernel) {
  return std::any_of(kernel.values.begin(), kernel.values.end(),
                     [](const kernel::Instruction& in) { return kernel::is_told_to_producers(in); });
}

/// Two barriers a stage, and two and a word for what producers are told.
std::int64_t pipeline_words(const kernel::Kernel& kernel, const kernel::MachineRegion& region) {
  return 2 * kernel::StagePipeline::of(region).stages + (tells_producers(kernel) ? 3 : 0);
}

/// Every thread runs the body as what it is: a producer or a consumer. Where one of a whole warpgroup produces
/// for several warpgroups that consume, registers go from that warpgroup to these (setmaxnreg of sm_90a).
void write_pipeline(const kernel::MachineRegion& region, RegionText& text) {
  const WarpgroupRegisters& registers = text.gpu().warpgroup_registers;
  const auto pipeline = kernel::StagePipeline::of(region);
  PipelineRole role(text.kernel(), pipeline);
  const int threads = text.block_threads(), consumers = pipeline.consumers,
            warpgroups = consumers / kernel::warpgroup_threads;
  const bool shares = !role.copied_by_all && warpgroups > 1 && threads == consumers + kernel::warpgroup_threads;
  const bool all_produce = role.copied_by_all || shares;
  text.shared_words("pipeline_barriers", pipeline_words(text.kernel(), region));
  text.write(fmt::format("StagePipeline<{0}> pipeline = start_pipeline<{0}{1}>(pipeline_barriers, {2}, {3});",
                         pipeline.stages, tells_producers(text.kernel()) ? ", true" : "",
                         role.copied_by_all ? threads - consumers : 1, consumers));
  text.write(fmt::format("if (threadIdx.x {} {}) {{", all_produce ? ">=" : "==", consumers));
  if (shares) text.write(fmt::format("  give_registers<{}>();", registers.producer));
  if (shares) text.write(fmt::format("  if (threadIdx.x != {}) return;", consumers));
  role.produces = true;
  text.body(pipeline.body, role);
  if (role.copied_by_all) text.write("  wait_all_copies();");
  text.write(fmt::format("}} else {}{{", all_produce ? "" : fmt::format("if (threadIdx.x < {}) ", consumers)));
  const int taken =
      std::min(registers.most, (registers.all - registers.producer) / warpgroups / registers.step * registers.step);
  if (shares) text.write(fmt::format("  take_registers<{}>();", taken));
  role.produces = false;
  text.body(pipeline.body, role);
  text.write("}");
}

void write_stage(const kernel::MachineRegion& region, RegionText& text) {
  const auto stage = kernel::Stage::of(region);
  PipelineRole inside = pipeline_role(text.role());
  inside.in_stage = true;
  const std::string index = text.index(stage.slot);
  text.write(fmt::format("pipeline.{}();", inside.produces        ? "wait_empty"
                                           : inside.copied_by_all ? "wait_copied"
                                                                  : "wait_full"));
  text.write("{");
  text.write(fmt::format("  const {} = pipeline.slot();", index));
  text.body(inside.produces ? stage.produce : stage.consume, inside);
  text.write("}");
  const bool multiplies = kernel::multiplies(text.kernel(), stage.consume);
  const char* done = multiplies ? "multiplied" : "used";
  if (inside.produces) done = inside.copied_by_all ? "filled" : "sent";
  text.write(fmt::format("pipeline.{}();", done));
}

constexpr std::string_view pipeline_names[] = {"StagePipeline",   "start_pipeline",   "consumer_barrier",
                                               "wait_all_copies", "give_registers",   "take_registers",
                                               "pipeline",        "pipeline_barriers"};
constexpr RegionHook pipeline_table[] = {{&kernel::stage_pipeline_record, write_pipeline, pipeline_words, true},
                                         {&kernel::stage_record, write_stage}};

}  // namespace

extern const MachineFamily pipeline_hooks;
constinit const MachineFamily pipeline_hooks{detail::prelude_pipelines, pipeline_names, {}, pipeline_table};

}  // namespace lathe::cuda
