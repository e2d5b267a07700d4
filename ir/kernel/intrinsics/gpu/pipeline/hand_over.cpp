#include "ir/kernel/intrinsics/gpu/pipeline/hand_over.h"

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {
constexpr RegionBodyTraits hand_over_bodies[] = {{"give", RunBy::all}, {"finish", RunBy::last}};
}  // namespace

constinit const IntrinsicRegionRecord hand_over_record = intrinsic_region_record<HandOver>(
    {.name = "hand_over", .bodies = hand_over_bodies, .attributes = 3, .index = "warpgroup number"});

HandOver HandOver::of(const IntrinsicRegion& region) {
  return {static_cast<int>(region.attributes[0]),
          region.attributes[1] != 0,
          static_cast<int>(region.attributes[2]),
          region.index,
          region.bodies[giving],
          region.bodies[finishing]};
}

void hand_over(Builder& b, int threads, const Builder::Body& give, const Builder::Body& finish) {
  b.region(hand_over_record, {threads, 0, 0}, {give, finish});
}

void hand_over_together(Builder& b, int registers, const std::function<void()>& give,
                        const std::function<void()>& finish) {
  b.region(hand_over_record, {warpgroup_threads, 1, registers}, {[&](Value) { give(); }, [&](Value) { finish(); }});
}

std::optional<HandOver> hand_over_in(const Block& statements) {
  std::optional<HandOver> found;
  for_each_statement(statements, [&](const Statement& s) {
    if (const IntrinsicRegion* region = region_of(s, hand_over_record)) found.emplace(HandOver::of(*region));
  });
  return found;
}

std::string HandOver::text(const IntrinsicText& text) const {
  return fmt::format("hand_over {}{} to {} threads{}", text.value(number), together ? " of all" : "", threads,
                     registers > 0 ? fmt::format(" of {} registers", registers) : "");
}

IntrinsicRegion HandOver::parse(IntrinsicReader& in) {
  const ValueId number = in.index();
  const bool together = in.accept("of");
  if (together) in.expect("all");
  in.expect("to");
  const int threads = in.number();
  in.expect("threads");
  int registers = 0;
  if (in.accept("of")) {
    registers = in.number();
    in.expect("registers");
  }
  return {.record = &hand_over_record, .attributes = {threads, together, registers}, .index = number, .bodies = {}};
}

Range HandOver::index_range(const Kernel& kernel) const {
  return {0, together ? 0 : std::max(1, consumers_of(kernel) / warpgroup_threads) - 1};
}

void HandOver::verify_place(const IntrinsicRegionRules& rules) const {
  const IntrinsicContext& context = rules.context;
  rules.require(context.is_in(stage_pipeline_record) && !context.is_in(stage_record) && context.branches == 0,
                "hand_over_context", "a hand_over in a branch, a stage or outside a pipeline");
  rules.require(!together || threads == warpgroup_threads, "hand_over_context",
                "a hand_over of all consumers to {} threads", threads);
}

void HandOver::verify_bodies(const IntrinsicRegionRules& rules) const {
  const Kernel& kernel = rules.kernel;
  const auto verify_body = [&](const Block& body, std::string_view name, bool to_shared, bool own_variables) {
    std::vector<bool> own(kernel.vars.size());
    for_each_statement(body, [&](const Statement& s) {
      const IntrinsicRecord* record = record_of(kernel, s);
      const bool by_own_warpgroup = !to_shared && record && record->together == Together::warpgroup;
      rules.require(by_own_warpgroup || !kernel.is_collective(s), "hand_over_bodies",
                    "a {} in which threads wait for others", name);
      if (const auto* store = std::get_if<Store>(&s.node))
        rules.require((kernel.buffers[store->buffer].space == Space::shared) == to_shared, "hand_over_bodies",
                      "a {} that stores to {}", name, kernel.buffers[store->buffer].name);
      if (const auto* set = std::get_if<SetVar>(&s.node)) {
        if (set->declares) own[set->var] = true;
        rules.require(own[set->var], "hand_over_bodies", "a {} that sets a variable of other statements", name);
      }
      const auto* compute = std::get_if<Compute>(&s.node);
      const Instruction* in = compute ? &value(kernel, compute->value) : nullptr;
      if (in && in->op == Opcode::get && own_variables)
        rules.require(own[in->integer], "hand_over_bodies", "a {} that reads a variable of the consumers", name);
    });
  };
  verify_body(give, "give", true, false);
  verify_body(finish, "finish", false, true);
}

void HandOver::interpret(IntrinsicRun& run, std::span<Thread* const> all) const {
  const auto consumers = static_cast<std::size_t>(consumers_of(run)), finishers = static_cast<std::size_t>(threads);
  const auto group = together ? consumers : static_cast<std::size_t>(warpgroup_threads);
  HandedElements& handed = handed_elements_of(run);
  handed.give(static_cast<std::int64_t>(group));
  for (std::size_t t = 0; t < consumers; ++t)
    run.lanes(number, *all[t])->integer = static_cast<std::int64_t>(t / group);
  run.run_together(give, all.first(consumers));
  for (std::size_t i = 0; i < consumers / group; ++i) {
    const auto own = all.last(finishers).subspan(together ? 0 : i * group % finishers, warpgroup_threads);
    for (Thread* t : own) run.lanes(number, *t)->integer = static_cast<std::int64_t>(i);
    handed.finish(static_cast<std::int64_t>(i));
    run.run_together(finish, own);
  }
  handed.end();
}

namespace {
constexpr const IntrinsicRegionRecord* hand_over_regions[] = {&hand_over_record};
}  // namespace
extern const IntrinsicFamily hand_over_intrinsics;
constinit const IntrinsicFamily hand_over_intrinsics{.regions = hand_over_regions};

}  // namespace lathe::kernel
