#include "ir/kernel/intrinsics/gpu/exchange.h"

#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

constinit const IntrinsicRecord from_lane_record = intrinsic_record<FromLane>(
    {.name = "from_lane", .args = {2, 2}, .gives_value = true, .passes_on = true, .together = Together::warp});

FromLane FromLane::of(const Instruction& in) { return {in.type, in.args[0], in.args[1]}; }
Instruction FromLane::instruction() const {
  return intrinsic_instruction({.record = &from_lane_record}, {value, lane}, type);
}

void FromLane::verify(const IntrinsicRules& rules) const {
  want(rules.kernel, type, {type.scalar, 1}, "a from_lane");
  rules.want(value, type, "the operand of from_lane");
  rules.want(lane, {i64, 1}, "the lane of from_lane");
  rules.require(rules.context.warp_loops > 0, "warp_threads", "a from_lane outside a thread.x loop of whole warps");
  rules.require(rules.context.branches == 0, "warp_context", "a from_lane in a branch");
}

std::string FromLane::text(const IntrinsicText& text) const { return plain_text("from_lane", {value, lane}, text); }

FromLane FromLane::parse(IntrinsicReader& in) {
  FromLane read{.value = in.value()};
  in.expect(",");
  read.lane = in.value();
  return read;
}

void FromLane::interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const {
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const std::int64_t from = run.integer(lane, *threads[i]);
    if (from < 0 || from >= warp_threads) run.fail(fmt::format("a from_lane of lane {}", from), "warp_lane");
    const std::size_t other =
        i - static_cast<std::size_t>(threads[i]->id() % warp_threads) + static_cast<std::size_t>(from);
    LATHE_ASSERT(other < threads.size() && threads[other]->id() / warp_threads == threads[i]->id() / warp_threads);
    *run.lanes(id, *threads[i]) = *run.lanes(value, *threads[other]);
  }
}

Value from_lane(Builder& builder, Value value, Value lane) {
  return builder.machine(FromLane{value.type, value.id, lane.id}.instruction());
}

constinit const IntrinsicRecord from_consumers_record =
    intrinsic_record<FromConsumers>({.name = "from_consumers",
                                     .args = {1, 1},
                                     .gives_value = true,
                                     .passes_on = true,
                                     .together = Together::pipeline});

FromConsumers FromConsumers::of(const Instruction& in) { return {in.type, in.args[0]}; }
Instruction FromConsumers::instruction() const {
  return intrinsic_instruction({.record = &from_consumers_record}, {value}, type);
}

void FromConsumers::verify(const IntrinsicRules& rules) const {
  want(rules.kernel, type, {boolean, 1}, "a from_consumers");
  rules.want(value, type, "the operand of from_consumers");
  const IntrinsicContext& context = rules.context;
  const bool outside_stage = context.is_in(stage_pipeline_record) && !context.is_in(stage_record);
  rules.require(outside_stage && context.branches == 0, "consumers_context",
                "a from_consumers in a branch, a stage or outside a pipeline");
}

std::string FromConsumers::text(const IntrinsicText& text) const {
  return plain_text("from_consumers", {value}, text);
}

FromConsumers FromConsumers::parse(IntrinsicReader& in) { return {.value = in.value()}; }

void FromConsumers::interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const {
  const auto consumers = static_cast<std::size_t>(consumers_of(run));
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (i < consumers && run.integer(value, *threads[i]) != run.integer(value, *threads[0]))
      run.fail(fmt::format("threads 0 and {} publish different values", i), "divergent_consumers");
    *run.lanes(id, *threads[i]) = *run.lanes(value, *threads[0]);
  }
}

Value from_consumers(Builder& builder, Value value) {
  return builder.machine(FromConsumers{value.type, value.id}.instruction());
}

namespace {
constexpr const IntrinsicRecord* exchange_records[] = {&from_lane_record, &from_consumers_record};
}  // namespace
extern const IntrinsicFamily exchange_intrinsics;
constinit const IntrinsicFamily exchange_intrinsics{.operations = exchange_records};

}  // namespace lathe::kernel
