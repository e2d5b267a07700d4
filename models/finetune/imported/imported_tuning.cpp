#include "models/finetune/imported/imported_tuning.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "frontend/dsl.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"
#include "models/finetune/imported/tensor_rows.h"
#include "models/finetune/run/averaged_weights.h"
#include "models/finetune/run/metrics_file.h"
#include "models/finetune/run/run_checks.h"
#include "models/finetune/run/run_context.h"
#include "models/generation/exported/exported_files.h"
#include "models/import/loss/training_graphs.h"
#include "models/text/dataset/epoch_order.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/files/sha256.h"
#include "runtime/parameters/lend.h"
#include "runtime/train/trainer.h"

namespace lathe {

namespace {

constexpr double default_rate = 2e-5;

void check_imported_options(const ImportedTuningOptions& o) {
  if (o.data.empty())
    throw UserError("there is no training data", "train_options", "set ImportedTuningOptions::data");
  if (o.output.empty())
    throw UserError("no output folder is given", "train_options", "set ImportedTuningOptions::output");
  if (o.compile.ranks)
    throw UserError("a graph of another system is trained by one process", "train_options",
                    "leave out compile.ranks");
  require_one_validation(o.valid, o.valid_share);
  for (const auto& [name, value] :
       {std::pair{"batch", o.batch}, {"evaluate_every", o.evaluate_every}, {"save_every", o.save_every}})
    require_at_least(name, value, 1);
  require_at_least("validation_batches", o.validation_batches, 0);
  require_at_least("steps", o.steps, 0);
  o.optimizer.check();
  require_epochs(o.epochs);
}

std::int64_t numbers_of(const ir::Node& argument) { return argument.type.shape.numel().evaluate({}); }

}  // namespace

class ImportedTuning::Run {
 public:
  explicit Run(ImportedTuningOptions options)
      : o_((check_imported_options(options), std::move(options))), run_(o_.compile, o_.observer) {
    optimizer_ = o_.optimizer.with_defaults({.lr = default_rate, .weight_decay = 0, .beta2 = 0.999});
  }

  TrainingResult run() {
    if (!trainer_) prepare();
    const bool done =
        trainer_->run([this](std::int64_t step) -> const Tensors& { return training_batch(step); }, steps_);
    if (!done) return result(true, {});
    write();
    if (!valid_) return result(false, {});
    const auto loss = trainer_->evaluate();
    if (!loss) return result(true, {});
    return result(false, after_evaluation(*loss, true));
  }

 private:
  std::filesystem::path training_folder() const { return o_.output / "training"; }
  std::filesystem::path weights_file() const { return o_.output / "model.safetensors"; }

  void prepare() {
    if (path_exists(weights_file()) && !path_exists(training_folder()))
      throw UserError(fmt::format("{} exists, and was not written by a training run", quote_path(weights_file())),
                      "output_folder", "give another output folder");
    imported_.emplace(importing::import_graph(o_.file, {.sizes = o_.sizes}));
    read_rows();
    run_.take_folder(training_folder(), o_.fresh);
    build();
    report_start();
  }

  void read_rows() {
    rows_.emplace(TensorRows::read(o_.data));
    if (!o_.valid.empty()) {
      valid_.emplace(TensorRows::read(o_.valid));
    } else if (o_.valid_share > 0) {
      auto [apart, rest] = rows_->split_off(o_.valid_share, o_.seed);
      valid_.emplace(std::move(apart)), rows_.emplace(std::move(rest));
    }
    if (valid_ && all_validation_batches() == 0)
      throw UserError(
          fmt::format("there are {} validation examples, fewer than a batch of {}", valid_->count(), o_.batch),
          "finetune_valid", "give more of them, or a smaller batch");
    order_.emplace(rows_->count(), o_.seed);
    batch_rows_.resize(static_cast<std::size_t>(o_.batch));
    if (steps_ == 0)
      steps_ = o_.steps > 0
                   ? o_.steps
                   : std::max<std::int64_t>(
                         1, static_cast<std::int64_t>(std::ceil(o_.epochs * static_cast<double>(rows_->count()) /
                                                                static_cast<double>(o_.batch))));
  }

  void build() {
    auto [optimizer, groups] = optimizer_.build(steps_);
    graphs_.emplace(importing::training_graphs(*imported_, o_.loss, optimizer,
                                               {.clip_norm = optimizer_.clip,
                                                .precision = o_.precision,
                                                .frozen = importing::names_with_any(imported_->graph, o_.frozen),
                                                .decayed = matrices(),
                                                .groups = std::move(groups)}));
    const ir::Graph &forward = graphs_->forward, &step = graphs_->step;
    const ExampleSummary training{.examples = rows_->count(), .empty_caches = rows_->add_empty(forward, past_prefix)};
    rows_->fit(forward, o_.batch);
    if (valid_) valid_->add_empty(forward, past_prefix), valid_->fit(forward, o_.batch);
    sizes_ = rows_->sizes(forward, o_.batch);
    find_arguments(step);
    const ExampleSummary validation{.examples = valid_ ? valid_->count() : 0};
    run_.observer().examples_read(training, valid_ ? &validation : nullptr);
    run_.choose_splits(forward);
    averages_ = AveragedWeights(optimizer_, step);
    CompileOptions compile = run_.step_options(sizes_);
    compile.reserve = sizes_;
    const StartValue start = [this](const std::string& name) {
      const Parameters& values = imported_->parameters;
      if (values.contains(name)) return values.share(name);
      return initial_value(graphs_->step, name, {}, o_.seed);
    };
    trainer_.emplace(step, start, trainer_options(averages_.evaluation(forward), compile));
    metrics_.emplace(training_folder() / "metrics.jsonl", trainer_->step(), trainer_->step() == steps_);
  }

  /// Counts the parameters, and finds the arguments that the run writes.
  void find_arguments(const ir::Graph& step) {
    for (const ir::ValueId id : step.arguments()) {
      const ir::Node& argument = step[id];
      if (!imported_->parameters.contains(argument.name)) continue;
      written_.push_back(argument.name);
      if (argument.op->name.value != "parameter") continue;
      parameters_ += numbers_of(argument);
      const bool is_trained = std::ranges::any_of(step.updates, [&](const ir::Update& u) { return u.state == id; });
      if (!is_trained) continue;
      trained_ += numbers_of(argument);
      if (argument.type.dtype != f32 && argument.type.dtype != f64)
        throw UserError(
            fmt::format("{} is {}, which would lose small updates", quote(argument.name), name(argument.type.dtype)),
            "train_parameters", "export the model in f32; precision bf16 trains it in mixed precision");
    }
  }

  TrainerOptions trainer_options(const ir::Graph& evaluation, const CompileOptions& compile) {
    TrainerOptions options = run_.trainer_options(compile, fixed_settings(), changeable_settings());
    options.save_every = o_.save_every;
    options.save_constants = false;
    options.after_step = [this](const StepReport& step) { after_step(step); };
    options.after_evaluation = [this](const LossPoint& at) { after_evaluation(at.loss, false); };
    options.after_save = [this](const std::filesystem::path& to) { run_.observer().saved(to, trainer_->history()); };
    options.stop = o_.stop;
    options.advice = o_.advice;
    if (valid_)
      options.evaluation =
          Evaluation{.graph = evaluation,
                     .batches = [this](std::int64_t i) -> const Tensors& { return validation_batch(i); },
                     .count = validation_batches(),
                     .every = o_.evaluate_every};
    return options;
  }

  const Tensors& training_batch(std::int64_t step) {
    for (std::int64_t i = 0; i < o_.batch; ++i) batch_rows_[i] = order_->at(step * o_.batch + i);
    rows_->gather(batch_rows_, batch_);
    return batch_;
  }

  const Tensors& validation_batch(std::int64_t index) {
    for (std::int64_t i = 0; i < o_.batch; ++i) batch_rows_[i] = static_cast<std::uint32_t>(index * o_.batch + i);
    valid_->gather(batch_rows_, batch_);
    return batch_;
  }

  /// Validations use whole batches, because their losses are averaged.
  std::int64_t all_validation_batches() const { return valid_->count() / o_.batch; }
  std::int64_t validation_batches() const {
    const std::int64_t all = all_validation_batches();
    return o_.validation_batches == 0 ? all : std::min(o_.validation_batches, all);
  }

  Settings fixed_settings() const {
    Settings fixed = optimizer_.fixed();
    fixed["graph"] = sha256_hex(ir::print(graphs_->forward));
    fixed["frozen"] = fmt::format("{}", fmt::join(o_.frozen, ", "));
    fixed["precision"] = name(o_.precision);
    return fixed;
  }

  Settings changeable_settings() const {
    Settings settings = optimizer_.changeable(steps_);
    settings["batch"] = fmt::format("{}", o_.batch);
    settings["seed"] = fmt::format("{}", o_.seed);
    settings["target"] = run_.compile().target.name;
    settings["data"] = rows_->hash();
    return settings;
  }

  void report_start() {
    const std::string name = o_.file.filename().string();
    run_.report_start({.step = trainer_->executable(),
                       .sizes = sizes_,
                       .model = name,
                       .parameters = parameters_,
                       .trained = trained_,
                       .rows_per_step = o_.batch,
                       .steps = steps_,
                       .epochs = static_cast<double>(steps_ * o_.batch) / static_cast<double>(rows_->count()),
                       .tokens_per_step = static_cast<double>(o_.batch),
                       .validation_batches = valid_ ? validation_batches() : 0,
                       .all_validation_batches = valid_ ? all_validation_batches() : 0,
                       .completed = trainer_->step()},
                      *trainer_);
  }

  void after_step(const StepReport& step) {
    metrics_->write(step.step,
                    {{"loss", step.loss},
                     {"learning_rate", step.outputs.at("learning_rate").get(0)},
                     {"grad_norm", step.outputs.at("grad_norm").get(0)},
                     {"epoch", static_cast<double>(step.step * o_.batch) / static_cast<double>(rows_->count())},
                     {"seconds", step.seconds}});
    run_.observer().step_done(step);
  }

  Validation after_evaluation(double loss, bool is_last) {
    const Validation validation{.step = trainer_->step(),
                                .loss = loss,
                                .batches = validation_batches(),
                                .all_batches = all_validation_batches(),
                                .is_last = is_last};
    run_.observer().validated(validation);
    metrics_->write(trainer_->step(), {{"validation_loss", loss}});
    return validation;
  }

  /// Writes all parameters and states of the file, also those that the loss does not depend on.
  void write() const {
    Tensors values = averages_.wholes(*trainer_, written_);
    for (const std::string& name : imported_->parameters.names())
      if (!values.contains(name)) values.set(name, lend(imported_->parameters.get(name)));
    write_safetensors(weights_file(), values);
  }

  TrainingResult result(bool stopped, const std::optional<Validation>& last) const {
    return {.steps = trainer_->step(), .stopped = stopped, .history = trainer_->history(), .validation = last};
  }

  ImportedTuningOptions o_;
  OptimizerSettings optimizer_;
  AveragedWeights averages_;
  std::int64_t steps_ = 0;
  RunContext run_;
  std::optional<importing::ImportedGraph> imported_;
  std::optional<TensorRows> rows_, valid_;
  std::optional<importing::TrainingGraphs> graphs_;
  DimBindings sizes_;
  std::vector<std::string> written_;  ///< parameters and states of the file that the step has
  std::int64_t parameters_ = 0, trained_ = 0;
  std::optional<Trainer> trainer_;
  std::optional<MetricsFile> metrics_;
  std::optional<EpochOrder> order_;
  std::vector<std::uint32_t> batch_rows_;  ///< numbers of the examples in batch_
  Tensors batch_;                          ///< reused for each step and each validation batch
};

ImportedTuning::ImportedTuning(ImportedTuningOptions options) : run_(std::make_unique<Run>(std::move(options))) {}
ImportedTuning::~ImportedTuning() = default;
ImportedTuning::ImportedTuning(ImportedTuning&&) noexcept = default;
ImportedTuning& ImportedTuning::operator=(ImportedTuning&&) noexcept = default;

TrainingResult ImportedTuning::run() { return run_->run(); }

}  // namespace lathe
