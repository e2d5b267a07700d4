#include "ir/kernel/intrinsics/gpu/pipeline/stage_pipeline.h"

#include <algorithm>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

namespace {

constexpr RegionBodyTraits pipeline_bodies[] = {{"", RunBy::first}},
                           stage_bodies[] = {{"produce", RunBy::others}, {"consume", RunBy::all, true}};

}  // namespace

constinit const IntrinsicRegionRecord stage_pipeline_record =
    intrinsic_region_record<StagePipeline>({.name = "pipeline", .bodies = pipeline_bodies, .attributes = 3});
constinit const IntrinsicRegionRecord stage_record =
    intrinsic_region_record<Stage>({.name = "stage", .bodies = stage_bodies, .index = "slot"});

StagePipeline StagePipeline::of(const IntrinsicRegion& region) {
  const auto attribute = [&](std::size_t i) { return static_cast<int>(region.attributes[i]); };
  return {attribute(0), attribute(1), attribute(2), region.bodies[0]};
}

Stage Stage::of(const IntrinsicRegion& region) {
  return {region.index, region.bodies[producing], region.bodies[consuming]};
}

void stage_pipeline(Builder& b, int stages, int consumers, const std::function<void()>& body, int blocks) {
  b.region(stage_pipeline_record, {stages, consumers, blocks}, {[&](Value) { body(); }});
}

void pipeline_stage(Builder& b, const Builder::Body& produce, const Builder::Body& consume) {
  b.region(stage_record, {}, {produce, consume});
}

std::string StagePipeline::text(const IntrinsicText&) const {
  return fmt::format("pipeline of {} for {} threads{}", stages, consumers,
                     blocks > 1 ? fmt::format(", {} blocks a multiprocessor", blocks) : "");
}

IntrinsicRegion StagePipeline::parse(IntrinsicReader& in) {
  in.expect("of");
  const int stages = in.number();
  in.expect("for");
  const int consumers = in.number();
  in.expect("threads");
  int blocks = 1;
  if (in.accept(",")) {
    blocks = in.number();
    in.words("blocks a multiprocessor");
  }
  return {.record = &stage_pipeline_record, .attributes = {stages, consumers, blocks}, .bodies = {}};
}

std::string Stage::text(const IntrinsicText& text) const { return "stage " + text.value(slot); }

IntrinsicRegion Stage::parse(IntrinsicReader& in) {
  return {.record = &stage_record, .index = in.index(), .bodies = {}};
}

bool leads_to_stage(const Statement& statement) { return holds_region(statement, &stage_record); }

bool copies_by_all(const Kernel& kernel, const StagePipeline& pipeline) {
  bool found = false;
  for_each_statement(pipeline.body, [&](const Statement& s) {
    const IntrinsicRecord* record = record_of(kernel, s);
    found = found || (record && record->produced_by == ProducedBy::each_producer);
  });
  return found;
}

int last_threads_of(const StagePipeline& pipeline) {
  int found = 0;
  for_each_statement(pipeline.body, [&](const Statement& s) {
    const auto* region = std::get_if<IntrinsicRegion>(&s.node);
    if (region && region->record->last_threads) found = std::max(found, region->record->last_threads(*region));
  });
  return found;
}

namespace {

/// Returns the pipelines of a kernel: at most one in a verified kernel.
std::vector<const IntrinsicRegion*> pipelines_of(const Kernel& kernel) {
  std::vector<const IntrinsicRegion*> found;
  for_each_statement(kernel.body, [&](const Statement& s) {
    if (const IntrinsicRegion* pipeline = region_of(s, stage_pipeline_record)) found.push_back(pipeline);
  });
  return found;
}

/// Checks that only serial loops lead to the bodies that `threads` run, and that the last threads run at most one.
/// Returns whether there is a body.
bool verify_path(const IntrinsicRegionRules& rules, const Block& statements, RunBy threads, std::string_view label) {
  bool found = false;
  for (const Statement& s : statements) {
    if (!leads_to(s, threads)) continue;
    const auto* loop = std::get_if<Loop>(&s.node);
    const bool is_serial = loop && loop->kind == LoopKind::serial;
    const bool is_other = found && threads == RunBy::last;
    rules.require(!is_other && (is_serial || std::holds_alternative<IntrinsicRegion>(s.node)), label,
                  "a pipeline with several hand-overs, or with a stage or hand-over that is not in serial loops");
    found = true;
    if (loop) verify_path(rules, loop->body, threads, label);
  }
  return found;
}

/// Checks that some threads need nothing that only the consumers know.
void verify_needs(const IntrinsicRegionRules& rules, const Block& body, RunBy threads, std::string_view label,
                  std::string_view name) {
  const PipelineNeeds needs = needs_of(rules.kernel, body, threads);
  for (std::size_t i = 0; i < needs.values.size(); ++i) {
    const Instruction& in = rules.kernel.values[i];
    const bool is_told = threads == RunBy::others && is_broadcast_to_producers(in);
    rules.require(!needs.values[i] || computes_alone(in) || is_told, label, "{} wants a {} of the consumers", name,
                  name_of(in));
  }
  rules.require(!needs.set_elsewhere, label, "{} wants a variable that consumers set", name);
}

/// Returns whether a producer may execute the operation: it gives a value or is a copy. Another rule rejects
/// operations that involve other threads.
bool fits_producer(const Instruction& in) {
  const IntrinsicRecord* record = record_of(in);
  return !record || record->gives_value || record->produced_by != ProducedBy::no_producer;
}

}  // namespace

void StagePipeline::verify_place(const IntrinsicRegionRules& rules) const {
  const IntrinsicContext& context = rules.context;
  rules.require(context.warp_loops > 0 && context.thread_loops == 1 && context.branches == 0, "pipeline_context",
                "a pipeline in a branch or outside the one thread loop, of whole warps along x");
}

void StagePipeline::verify_bodies(const IntrinsicRegionRules& rules) const {
  rules.require(pipelines_of(rules.kernel).size() == 1, "pipeline_context", "two pipelines");
  const Loop& loop = *rules.context.threads;
  rules.require(std::get_if<IntrinsicRegion>(&loop.body.back().node) == &rules.region, "pipeline_context",
                "a pipeline that is not the last statement of its thread loop");
  const std::int64_t threads = value(rules.kernel, loop.hi).integer;
  rules.require(consumers > 0 && consumers % warpgroup_threads == 0, "pipeline_threads",
                "a pipeline for {} of {} threads", consumers, threads);
  rules.require(consumers < threads, "pipeline_threads", "a pipeline without a producer");
  rules.require(stages >= 2 && stages <= 8, "pipeline_stage", "a multistage pipeline of {} stages", stages);
  rules.require(verify_path(rules, body, RunBy::others, "pipeline_stage"), "pipeline_stage",
                "a pipeline without a stage");
  verify_needs(rules, body, RunBy::others, "pipeline_producer", "a producer");
  if (!verify_path(rules, body, RunBy::last, "pipeline_last")) return;
  const int last = last_threads_of(*this);
  rules.require(last > 0 && last % warpgroup_threads == 0 && consumers % last == 0 &&
                    threads - consumers - last == warpgroup_threads && !copies_by_all(rules.kernel, *this),
                "pipeline_last", "a pipeline of {} threads for {} consumers and the last {}", threads, consumers,
                last);
  verify_needs(rules, body, RunBy::last, "pipeline_last", "a last thread");
}

void Stage::verify_place(const IntrinsicRegionRules& rules) const {
  rules.require(rules.context.is_in(stage_pipeline_record), "pipeline_stage", "a stage outside a pipeline");
}

void Stage::verify_bodies(const IntrinsicRegionRules& rules) const {
  std::vector<bool> own(rules.kernel.vars.size());
  for_each_statement(produce, [&](const Statement& s) {
    const auto* compute = std::get_if<Compute>(&s.node);
    const Instruction* in = compute ? &value(rules.kernel, compute->value) : nullptr;
    const bool fits = std::visit(Overloaded{[&](const Compute&) { return fits_producer(*in); },
                                            [](const Loop&) { return true; }, [](const Branch&) { return true; },
                                            [&](const SetVar& set) {
                                              if (set.declares) own[set.var] = true;
                                              return bool(own[set.var]);
                                            },
                                            [](const auto&) { return false; }},
                                 s.node);
    rules.require(fits, "pipeline_producer", "a producer that does more than copy");
    if (!in) return;
    rules.require(!is_collective(*in) && (in->op != Opcode::get || own[in->integer]), "pipeline_producer",
                  "a {} of a producer, which other threads take part in", name_of(*in));
  });
}

Range Stage::index_range(const Kernel& kernel) const {
  return {0, StagePipeline::of(*pipelines_of(kernel).front()).stages - 1};
}

namespace {

class RunningPipeline : public RunningRegion {
 public:
  RunningPipeline(const Kernel& kernel, const StagePipeline& pipeline)
      : consumers(static_cast<std::size_t>(pipeline.consumers)),
        last(static_cast<std::size_t>(last_threads_of(pipeline))),
        kernel_(kernel),
        stages_(pipeline.stages),
        needs_(needs_of(kernel, pipeline.body, RunBy::others)),
        last_needs_(needs_of(kernel, pipeline.body, RunBy::last)) {}

  const std::size_t consumers, last;
  HandedElements handed;

  /// All threads run the statements that lead to a stage or to the last threads' body, and the computations that
  /// access no memory. Only the consumers run the rest.
  std::span<Thread* const> runners(const Statement& s, std::span<Thread* const> threads) const override {
    const auto* set = std::get_if<SetVar>(&s.node);
    if (leads_to_stage(s) || leads_to(s, RunBy::last)) return threads;
    if (set && (needs_.vars[set->var] || last_needs_.vars[set->var])) return threads;
    const auto* compute = std::get_if<Compute>(&s.node);
    const Instruction* in = compute ? &value(kernel_, compute->value) : nullptr;
    const bool by_all = in && (computes_alone(*in) || is_broadcast_to_producers(*in));
    return by_all ? threads : threads.first(std::min(threads.size(), consumers));
  }

  /// Phases of an iteration: produced, consumed, ended. `produce` returns the slot.
  std::int64_t produce() {
    iteration_ = iterations_++;
    produces_ = true;
    return iteration_ % stages_;
  }
  void consume() { produces_ = false; }
  void end() { iteration_ = -1; }

  /// A stage's data may be read only in its `consume`: earlier its copies may be in flight, later the copies of the
  /// next iteration.
  bool note_read(const Target& from, std::int64_t index, const Actor& actor) override {
    if (handed.note_read(from, index, actor)) return true;
    const std::int64_t produced = elements_.at(from, index).iteration;
    if (produced < 0) return false;
    if (iteration_ != produced)
      from.fail(fmt::format("thread {} reads {}[{}], which iteration {} of a pipeline produced, {}", actor.thread,
                            from.info->name, index, produced,
                            iteration_ >= 0 ? fmt::format("in iteration {}", iteration_) : "outside the stage"),
                "stage");
    return true;
  }

  /// A producer may overwrite data of earlier iterations that the consumers have finished.
  bool note_write(const Target& to, std::int64_t index, const Actor& actor) override {
    if (handed.note_write(to, index, actor)) return true;
    Element& use = elements_.at(to, index);
    const std::string& name = to.info->name;
    const std::int64_t before = use.iteration;
    if (!produces_) {
      if (before >= 0)
        to.fail(fmt::format("thread {} writes {}[{}], which a pipeline produces", actor.thread, name, index),
                "stage");
      use.is_consumers = true;
      return false;
    }
    if (use.is_consumers)
      to.fail(fmt::format("a pipeline produces {}[{}], which its consumers write", name, index), "stage");
    if (before >= 0 && before != iteration_ && before > iteration_ - stages_)
      to.fail(
          fmt::format("iteration {} of a pipeline produces {}[{}], which iteration {} produced and may still consume",
                      iteration_, name, index, before),
          "stage");
    if (before == iteration_ && use.producer != actor.thread)
      to.fail(
          fmt::format("threads {} and {} produce {}[{}] in one iteration", use.producer, actor.thread, name, index),
          "race");
    use.iteration = iteration_;
    use.producer = actor.thread;
    return before >= 0;
  }

 private:
  struct Element {
    std::int64_t iteration = -1;  // iteration that last produced it
    std::int64_t producer = -1;   // thread that produced it
    bool is_consumers = false;    // written by consumers
  };

  const Kernel& kernel_;
  int stages_;
  PipelineNeeds needs_, last_needs_;
  std::int64_t iterations_ = 0, iteration_ = -1;  // -1: outside the stage
  bool produces_ = false;
  SharedElements<Element> elements_;
};

RunningPipeline* running_pipeline(const IntrinsicRun& run) {
  for (RunningRegion* region : run.regions())
    if (auto* pipeline = dynamic_cast<RunningPipeline*>(region)) return pipeline;
  return nullptr;
}

}  // namespace

int consumers_of(const IntrinsicRun& run) {
  const RunningPipeline* pipeline = running_pipeline(run);
  return pipeline ? static_cast<int>(pipeline->consumers) : 0;
}

int consumers_of(const Kernel& kernel) {
  const auto pipelines = pipelines_of(kernel);
  return pipelines.empty() ? 0 : StagePipeline::of(*pipelines.front()).consumers;
}

HandedElements& handed_elements_of(const IntrinsicRun& run) {
  RunningPipeline* const pipeline = running_pipeline(run);
  LATHE_ASSERT(pipeline);
  return pipeline->handed;
}

void StagePipeline::interpret(IntrinsicRun& run, std::span<Thread* const> threads) const {
  run.barrier();
  RunningPipeline pipeline(run.kernel(), *this);
  run.run_inside(pipeline, body, threads);
}

/// Produces the stage, waits for its copies, then consumes it.
void Stage::interpret(IntrinsicRun& run, std::span<Thread* const> threads) const {
  RunningPipeline* const pipeline = running_pipeline(run);
  LATHE_ASSERT(pipeline);
  const std::int64_t now = pipeline->produce();
  for (Thread* t : threads) run.lanes(slot, *t)->integer = now;
  for (Thread* t : threads.subspan(pipeline->consumers, threads.size() - pipeline->consumers - pipeline->last)) {
    run.run_alone(produce, *t);
    t->copies.commit();
    t->copies.wait(0, run.actor(*t));
  }
  pipeline->consume();
  run.run_together(consume, threads.first(pipeline->consumers));
  pipeline->end();
}

namespace {
constexpr const IntrinsicRegionRecord* pipeline_regions[] = {&stage_pipeline_record, &stage_record};
}  // namespace
extern const IntrinsicFamily pipeline_intrinsics;
constinit const IntrinsicFamily pipeline_intrinsics{.regions = pipeline_regions};

}  // namespace lathe::kernel
