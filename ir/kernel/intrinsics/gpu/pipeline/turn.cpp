#include "ir/kernel/intrinsics/gpu/pipeline/turn.h"

#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {
constexpr RegionBodyTraits turn_bodies[] = {{"", RunBy::all}};
}  // namespace

constinit const IntrinsicRegionRecord turn_record =
    intrinsic_region_record<Turn>({.name = "turn", .bodies = turn_bodies});

Turn Turn::of(const IntrinsicRegion& region) { return {region.bodies[0]}; }

void turn(Builder& b, const std::function<void()>& body) {
  b.region(turn_record, {}, {[&](Value) { body(); }});
}

void Turn::verify_place(const IntrinsicRegionRules& rules) const {
  const IntrinsicContext& context = rules.context;
  rules.require(context.branches == 0 && context.is_in(stage_record, Stage::consuming) && !context.is_in(turn_record),
                "turn_context", "a turn in a branch, in another turn or outside the use of a stage");
}

void Turn::verify_bodies(const IntrinsicRegionRules& rules) const {
  for_each_statement(body, [&](const Statement& s) {
    const IntrinsicRecord* record = record_of(rules.kernel, s);
    const bool starts = !record || record->sums == OfSums::adds_later || record->sums == OfSums::commits;
    const bool fits = std::visit(Overloaded{[&](const Compute&) { return starts; }, [](const Loop&) { return true; },
                                            [](const auto&) { return false; }},
                                 s.node);
    rules.require(fits, "turn_body", "a turn that does more than start matmuls");
  });
}

std::string Turn::text(const IntrinsicText&) const { return "turn"; }
IntrinsicRegion Turn::parse(IntrinsicReader&) { return {.record = &turn_record, .bodies = {}}; }

/// For all consumers: the order of their matmuls changes no value.
void Turn::interpret(IntrinsicRun& run, std::span<Thread* const> threads) const { run.run_together(body, threads); }

namespace {
constexpr const IntrinsicRegionRecord* turn_regions[] = {&turn_record};
}  // namespace
extern const IntrinsicFamily turn_intrinsics;
constinit const IntrinsicFamily turn_intrinsics{.regions = turn_regions};

}  // namespace lathe::kernel
