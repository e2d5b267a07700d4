#include "tools/train/train_output.h"

#include <fmt/core.h>

#include "ir/support/visible.h"
#include "ir/tensor/explain/explain.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/program.h"
#include "runtime/executable_program.h"
#include "tools/streams.h"

namespace lathe::tools {

TrainOutput::TrainOutput(const TextTrainingOptions& options, bool prints_graph)
    : TrainingOutput(options.output, "character"),
      model_(options.model.kind),
      context_(options.model.context),
      output_(options.output),
      prints_graph_(prints_graph) {}

void TrainOutput::text_read(const TextSummary& text) {
  units_ = text.unit;
  curve_title_ = fmt::format("{} on {} characters", model_, text.bytes);
  print("text: {} {}, {} distinct; {} to train on, {} to validate\n", text.training + text.validation, text.unit,
        text.distinct, format_count(static_cast<double>(text.training)),
        format_count(static_cast<double>(text.validation)));
}

void TrainOutput::model_built(const ir::Graph& loss, const DefaultSplitSummary* splits) {
  if (prints_graph_) print("\n{}\n", ir::print_short(loss));
  TrainingOutput::model_built(loss, splits);
}

void TrainOutput::started(const TrainingStart& start) {
  const CompileSummary& c = start.step.summary();
  if (c.tuned) print("{}", to_string(*c.tuned));
  if (const auto& ranks = start.step.ranks())
    print("{} processes: {}; numbers below are per process\n", ranks->size(), start.sharding);
  print("{}", c.division);
  const MemoryPlan plan = memory_plan_of(start.step, start.sizes);
  print(
      "training step: {} ops in {} fused regions, {} launches of {} distinct kernels; {} compiled, {} from the "
      "cache, in {:.2f} s\n",
      c.ops, program_of(start.step).regions, c.launches, c.kernels, c.compiled, c.from_cache,
      c.pass_seconds + c.lower_seconds + c.codegen_seconds);
  print("memory: {} planned at peak, {} for parameters, moments and results{}\n", format_bytes(plan.arena_bytes),
        format_bytes(plan.argument_bytes), kept_text(plan));
  print("{} parameters; batches of {} x {} {}; {} steps\n", format_count(static_cast<double>(start.parameters)),
        start.rows_per_step, context_, units_, start.steps);
  start_steps(start);
}

void TrainOutput::validated(const Validation& validation) {
  if (!validation.is_last) line(fmt::format("step {:>5}  validation loss {:.3f}", validation.step, validation.loss));
}

void TrainOutput::finish(const TrainingResult& result) {
  end(result.history);
  const Validation& last = *result.validation;
  print("validation loss {:.3f} nats per {} over {}\n", last.loss, units_.substr(0, units_.size() - 1),
        last.batches == last.all_batches
            ? "the whole validation text"
            : fmt::format("{} of {} batches of the validation text", last.batches, last.all_batches));
  print("checkpoint and loss.svg in {}; the model for lathe generate and transformers in {}\n",
        visible(output_.string()), visible((output_ / "model").string()));
}

}  // namespace lathe::tools
