#include "tools/train/fine_tune_output.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "ir/support/visible.h"
#include "tools/streams.h"

namespace lathe::tools {

namespace {

std::filesystem::path data_of(const FineTuneOptions& options) {
  return !options.data.empty() ? options.data : !options.text.empty() ? options.text : options.sources;
}

std::string line_of(const char* name, const ExampleSummary& summary, std::int64_t context) {
  std::string text = fmt::format("{}: {} examples, {} tokens ({} to train on), in {} rows", name, summary.examples,
                                 summary.tokens, summary.predictions, summary.rows);
  if (summary.split) text += fmt::format("; {} longer than {} tokens are split", summary.split, context);
  if (summary.cut) text += fmt::format("; {} are truncated", summary.cut);
  if (summary.dropped) text += fmt::format("; {} without tokens to train on are skipped", summary.dropped);
  return text + "\n";
}

}  // namespace

FineTuneOutput::FineTuneOutput(const FineTuneOptions& options)
    : TrainingOutput(options.output / "training", "token"),
      context_(options.context),
      data_(data_of(options)),
      output_(options.output) {}

void FineTuneOutput::examples_read(const ExampleSummary& training, const ExampleSummary* validation) {
  print("{}{}", line_of("training", training, context_),
        validation ? line_of("validation", *validation, context_) : "");
}

void FineTuneOutput::started(const TrainingStart& start) {
  is_adapter_ = start.is_adapter;
  curve_title_ = fmt::format("{} on {}", start.model, data_.filename().string());
  print_weights(start);
  print("{} steps of {} rows of up to {} tokens; {:.1f} epochs\n", start.steps, start.rows_per_step, context_,
        start.epochs);
  if (start.validation_batches < start.all_validation_batches)
    print("validation on the first {} of {} batches (--validation-batches 0 uses all)\n", start.validation_batches,
          start.all_validation_batches);
  start_steps(start);
}

void FineTuneOutput::step_done(const StepReport& step) {
  TrainingOutput::step_done(step);
  if (!std::exchange(time_reported_, true) && step.step < step.last)
    line(fmt::format("the first step took {:.2f} s; about {} for the remaining {} steps", step.seconds,
                     format_duration(step.seconds * static_cast<double>(step.last - step.step)),
                     step.last - step.step));
}

void FineTuneOutput::validated(const Validation& validation) {
  line(fmt::format("step {:>5}  validation loss {:.4f}, perplexity {:.3f}", validation.step, validation.loss,
                   std::exp(validation.loss)));
}

void FineTuneOutput::sampled(const GeneratedSample& sample) {
  line(fmt::format("step {:>5}  prompt \"{}\", sample \"{}\"", sample.step, visible(sample.prompt),
                   visible(sample.text)));
}

void FineTuneOutput::finish(const TrainingResult& result) {
  end(result.history);
  print("{} in {}; metrics.jsonl and loss.svg in {}\n", is_adapter_ ? "adapter" : "model", visible(output_.string()),
        visible((output_ / "training").string()));
}

}  // namespace lathe::tools
