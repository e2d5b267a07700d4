#include "models/finetune/fine_tuning.h"

#include <fmt/core.h>

#include <cmath>

#include "ir/support/error.h"
#include "models/finetune/example_data.h"
#include "models/finetune/optimizer_settings.h"
#include "models/finetune/run/averaged_weights.h"
#include "models/finetune/run/metrics_file.h"
#include "models/finetune/run/prompt_samples.h"
#include "models/finetune/run/run_checks.h"
#include "models/finetune/run/run_context.h"
#include "models/finetune/step_graph.h"
#include "models/finetune/tuned_model.h"
#include "models/pretrained/families.h"
#include "runtime/ranks/agreement.h"
#include "runtime/train/trainer.h"

namespace lathe {

namespace {

constexpr double adapter_rate = 2e-4, full_rate = 2e-5;

void check_data_options(const FineTuneOptions& o) {
  if (int{o.data.empty()} + int{o.text.empty()} + int{o.sources.empty()} != 2)
    throw UserError("there must be one source of training data", "train_options",
                    "give one of data, text and sources");
  require_one_validation(o.valid, o.valid_share);
}

void check_fine_tune_options(const FineTuneOptions& o) {
  check_data_options(o);
  if (o.output.empty()) throw UserError("no output folder is given", "train_options", "set FineTuneOptions::output");
  for (const auto& [name, value] : {std::pair{"batch", o.batch},
                                    {"accumulate", o.accumulate},
                                    {"evaluate_every", o.evaluate_every},
                                    {"save_every", o.save_every},
                                    {"samples.every", o.samples.every},
                                    {"samples.tokens", o.samples.tokens}})
    require_at_least(name, value, 1);
  require_at_least("context", o.context, 2);
  require_at_least("validation_batches", o.validation_batches, 0);
  o.optimizer.check();
  require_at_least("steps", o.steps, 0);
  require_epochs(o.epochs);
}

}  // namespace

/// A fine-tuning run. Steps of the Trainer are batches; the observer's steps are updates of `accumulate` batches
/// each.
class FineTuning::Run {
 public:
  explicit Run(FineTuneOptions options)
      : o_((check_fine_tune_options(options), std::move(options))),
        optimizer_(o_.optimizer),
        steps_(o_.steps),
        run_(o_.compile, o_.observer) {}

  TrainingResult run() {
    if (!trainer_) prepare();
    const TokenBatches& batches = data_->training();
    const bool done =
        trainer_->run([&](std::int64_t step) { return batches.training(step); }, steps_ * o_.accumulate);
    if (!done) return result(true, {});
    // The last validation may take long, so the model is written first.
    Parameters weights = model_->whole_weights(*trainer_, averages_);
    if (run_.is_first()) model_->write(std::move(weights));
    if (!data_->validation()) return result(false, {});
    const auto loss = trainer_->evaluate();
    if (!loss) return result(true, {});
    return result(false, after_evaluation(*loss, true));
  }

 private:
  std::filesystem::path training_folder() const { return o_.output / "training"; }

  void prepare() {
    model_.emplace(o_);
    run_.take_folder(training_folder(), o_.fresh);
    load();
    prepare_training();
    report_start();
  }

  void load() {
    model_->load();
    for (const std::string& note : pretrained::unread_key_notes(model_->folder())) run_.observer().note(note);
    if (const auto longest = model_->graph().context_length(); longest && o_.context > *longest)
      throw UserError(fmt::format("context {}: the model has {} positions", o_.context, *longest), "finetune_context",
                      "give a smaller context");
    data_.emplace(model_->loaded(), ExampleSettings{.data = o_.data,
                                                    .text = o_.text,
                                                    .sources = o_.sources,
                                                    .valid = o_.valid,
                                                    .valid_share = o_.valid_share,
                                                    .batches = {.context = o_.context,
                                                                .batch = o_.batch,
                                                                .accumulate = o_.accumulate,
                                                                .pack = o_.pack,
                                                                .lengths = model_->graph().depends_on_length(),
                                                                .seed = o_.seed}});
    if (run_.ranks())
      require_agreement(*run_.ranks(), {{"the data", data_->hash().substr(0, 16), "give all processes the same data"},
                                        {"the model", model_->weights_digest().substr(0, 16),
                                         "give all processes the same directories"}});
    run_.observer().examples_read(data_->training_summary(), data_->validation_summary());
    if (!o_.samples.prompts.empty()) samples_.emplace(model_->loaded(), o_.samples, o_.seed);
    model_->prepare_to_train();
    if (run_.is_first()) model_->check_output_folder();
  }

  void prepare_training() {
    optimizer_ = optimizer_.with_defaults(
        {.lr = model_->has_adapter() ? adapter_rate : full_rate, .weight_decay = 0, .beta2 = 0.999});
    const double updates = static_cast<double>(data_->training().updates_per_epoch());
    if (steps_ == 0) steps_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(o_.epochs * updates)));
    // Rows are padded to the longest example of their batch.
    const Dim B("B", o_.batch), T = o_.pack ? Dim("T", o_.context) : Dim("T");
    if (!o_.pack) sizes_.emplace("T", o_.context);
    auto [optimizer, groups] = optimizer_.build(steps_);
    const auto [forward, step] = step_graphs(model_->graph(), {.B = B, .T = T, .packed = o_.pack}, optimizer,
                                             {.clip_norm = optimizer_.clip,
                                              .accumulate = o_.accumulate,
                                              .precision = o_.precision,
                                              .groups = std::move(groups)});
    run_.choose_splits(forward);
    averages_ = AveragedWeights(optimizer_, step);
    sizes_ = run_.sizes_here(std::move(sizes_));
    run_.require_same(fixed_settings(), changeable_settings());
    CompileOptions compile = run_.step_options(sizes_);
    compile.reserve = sizes_;
    const StartValue start = [this, graph = step](const std::string& name) {
      return model_->start_of(graph, name, o_.seed);
    };
    trainer_.emplace(step, start, trainer_options(averages_.evaluation(forward), compile));
    if (run_.is_first())
      metrics_.emplace(training_folder() / "metrics.jsonl", updates_done(), updates_done() == steps_);
  }

  TrainerOptions trainer_options(const ir::Graph& evaluation, const CompileOptions& compile) {
    TrainerOptions options = run_.trainer_options(compile, fixed_settings(), changeable_settings());
    options.save_every = o_.save_every * o_.accumulate;
    options.save_constants = false;
    options.after_step = [this](const StepReport& step) { after_step(step); };
    options.after_evaluation = [this](const LossPoint& at) { after_evaluation(at.loss, false); };
    options.after_save = [this](const std::filesystem::path& to) { run_.observer().saved(to, history()); };
    options.stop = o_.stop;
    options.before_replay = [this](std::int64_t first, std::int64_t last) {
      run_.observer().replaying((first - 1) / o_.accumulate + 1, (last - 1) / o_.accumulate + 1);
    };
    options.advice = o_.advice;
    if (const TokenBatches* valid = data_->validation()) {
      const std::int64_t count = validation_batches();
      options.evaluation =
          Evaluation{.graph = evaluation,
                     .batches = [valid, count](std::int64_t i) { return valid->evaluation(i, count); },
                     .count = count,
                     .every = o_.evaluate_every * o_.accumulate};
    }
    return options;
  }

  Settings fixed_settings() const {
    Settings fixed = optimizer_.fixed();
    fixed["model"] = model_->config_hash();
    fixed["lora"] = model_->adapter_text();
    fixed["accumulate"] = fmt::format("{}", o_.accumulate);
    fixed["precision"] = name(o_.precision);
    return fixed;
  }

  Settings changeable_settings() const {
    Settings settings = optimizer_.changeable(steps_);
    settings["batch"] = fmt::format("{}", o_.batch);
    settings["context"] = fmt::format("{}", o_.context);
    settings["pack"] = o_.pack ? "true" : "false";
    settings["seed"] = fmt::format("{}", o_.seed);
    settings["target"] = run_.compile().target.name;
    settings["data"] = data_->hash();
    settings["processes"] = run_.sharding("one");
    return settings;
  }

  void report_start() {
    const TokenBatches& batches = data_->training();
    const std::int64_t rows_per_step = o_.batch * o_.accumulate;
    const auto rows = static_cast<double>(batches.rows());
    const bool validates = data_->validation() != nullptr;
    run_.report_start(
        {.step = trainer_->executable(),
         .sizes = sizes_,
         .model = model_->graph().kind(),
         .parameters = model_->parameters(),
         .trained = model_->trained_parameters(),
         .is_adapter = model_->has_adapter(),
         .rows_per_step = rows_per_step,
         .steps = steps_,
         .epochs = static_cast<double>(steps_ * rows_per_step) / rows,
         .tokens_per_step = static_cast<double>(batches.tokens()) / rows * static_cast<double>(rows_per_step),
         .validation_batches = validates ? validation_batches() : 0,
         .all_validation_batches = validates ? data_->validation()->evaluation_batches() : 0,
         .completed = updates_done()},
        *trainer_);
  }

  /// Returns the number of batches of a validation. There must be validation examples.
  std::int64_t validation_batches() const {
    const std::int64_t all = data_->validation()->evaluation_batches();
    return o_.validation_batches == 0 ? all : std::min(o_.validation_batches, all);
  }

  std::int64_t updates_done() const { return trainer_->step() / o_.accumulate; }

  void after_step(const StepReport& batch) {
    tokens_ += data_->training().tokens_of(batch.step - 1);
    seconds_ += batch.seconds;
    if (batch.step % o_.accumulate != 0) return;
    if (run_.is_first())
      report_step({.step = updates_done(),
                   .last = steps_,
                   .loss = loss_of_update(updates_done()),
                   .seconds = seconds_,
                   .skipped = batch.skipped,
                   .outputs = batch.outputs});
    tokens_ = 0, seconds_ = 0;
    if (samples_ && (updates_done() % o_.samples.every == 0 || updates_done() == steps_)) write_samples();
  }

  void report_step(const StepReport& update) {
    metrics_->write(update.step, {{"loss", update.loss},
                                  {"learning_rate", update.outputs.at("learning_rate").get(0)},
                                  {"grad_norm", update.outputs.at("grad_norm").get(0)},
                                  {"epoch", static_cast<double>(trainer_->step() * o_.batch) /
                                                static_cast<double>(data_->training().rows())},
                                  {"tokens", static_cast<double>(tokens_)},
                                  {"seconds", update.seconds}});
    run_.observer().step_done(update);
  }

  /// Generates samples on the first process. The others wait.
  void write_samples() {
    const Parameters weights = model_->whole_weights(*trainer_, averages_);
    if (!run_.is_first()) return;
    const std::vector<std::string> texts = samples_->write(
        model_->graph(), weights,
        {.threads = run_.compile().threads, .cache = run_.compile().cache, .target = run_.compile().target});
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string& prompt = o_.samples.prompts[i];
      run_.observer().sampled({.step = updates_done(), .prompt = prompt, .text = texts[i]});
      metrics_->write(updates_done(), {{"prompt", prompt}, {"sample", texts[i]}});
    }
  }

  Validation after_evaluation(double loss, bool is_last) {
    const Validation validation{.step = updates_done(),
                                .loss = loss,
                                .batches = validation_batches(),
                                .all_batches = data_->validation()->evaluation_batches(),
                                .is_last = is_last};
    run_.observer().validated(validation);
    if (run_.is_first()) metrics_->write(updates_done(), {{"validation_loss", loss}, {"perplexity", std::exp(loss)}});
    return validation;
  }

  /// Returns the mean loss of an update's weighted batches.
  double loss_of_update(std::int64_t update) const {
    const std::vector<LossPoint>& all = trainer_->history().training;
    double sum = 0;
    for (std::int64_t i = (update - 1) * o_.accumulate; i < update * o_.accumulate; ++i) sum += all[i].loss;
    return sum / static_cast<double>(o_.accumulate);
  }

  /// Returns the losses by update.
  LossHistory history() const {
    LossHistory by_update{.training = {}, .evaluation = trainer_->history().evaluation};
    for (std::int64_t i = 1; i <= updates_done(); ++i) by_update.training.push_back({i, loss_of_update(i)});
    for (LossPoint& point : by_update.evaluation) point.step /= o_.accumulate;
    return by_update;
  }

  TrainingResult result(bool stopped, const std::optional<Validation>& last) const {
    return {.steps = updates_done(), .stopped = stopped, .history = history(), .validation = last};
  }

  FineTuneOptions o_;
  OptimizerSettings optimizer_;
  AveragedWeights averages_;
  std::int64_t steps_;  ///< updates; 0 until they follow from the data
  RunContext run_;
  std::optional<TunedModel> model_;
  std::optional<ExampleData> data_;
  std::optional<PromptSamples> samples_;
  DimBindings sizes_;  ///< of dims that the graph does not know, on one process
  std::optional<Trainer> trainer_;
  std::optional<MetricsFile> metrics_;
  std::int64_t tokens_ = 0;  ///< tokens of the current update so far
  double seconds_ = 0;       ///< seconds of the current update so far
};

FineTuning::FineTuning(FineTuneOptions options) : run_(std::make_unique<Run>(std::move(options))) {}
FineTuning::~FineTuning() = default;
FineTuning::FineTuning(FineTuning&&) noexcept = default;
FineTuning& FineTuning::operator=(FineTuning&&) noexcept = default;

TrainingResult FineTuning::run() { return run_->run(); }

}  // namespace lathe
