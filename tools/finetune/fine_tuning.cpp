#include "tools/finetune/fine_tuning.h"

#include <fmt/core.h>

#include <cmath>
#include <optional>

#include "frontend/initial_values.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/visible.h"
#include "models/finetune/example_data.h"
#include "models/finetune/metrics_file.h"
#include "models/finetune/model_directory.h"
#include "models/finetune/step_graph.h"
#include "passes/memory/memory_plan.h"
#include "passes/program/program.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/paths.h"
#include "runtime/files/sha256.h"
#include "runtime/parameters/lend.h"
#include "runtime/ranks/agreement.h"
#include "runtime/train/trainer.h"
#include "tools/files.h"
#include "tools/options/adapter_options.h"
#include "tools/options/memory_budget.h"
#include "tools/options/target_option.h"
#include "tools/pretrained/ignored_keys.h"
#include "tools/stop_signals.h"
#include "tools/streams.h"
#include "tools/train/loss_curve.h"
#include "tools/train/training_output.h"

namespace lathe::tools {

namespace {

constexpr double adapter_rate = 2e-4, full_rate = 2e-5;

/// Hashes names, types and the first 4 KiB of each value, which differ between models. Reading whole mapped files
/// would be too slow.
std::string digest_of_starts(const Parameters& weights) {
  constexpr std::size_t most = 4096;
  Sha256 hash;
  for (const std::string& name : weights.names()) {
    const HostTensor& value = weights.get(name);
    hash.update(fmt::format("{} {}{}\n", name, lathe::name(value.dtype()), shape_to_string(value.shape())));
    hash.update(std::span(value.data(), std::min(most, value.bytes())));
  }
  return to_hex(hash.finish());
}

/// A fine-tuning run. Steps of the Trainer are batches; steps in the output are updates of `accumulate` batches each.
class FineTuning {
 public:
  FineTuning(const FineTuneSettings& settings, std::shared_ptr<Ranks> ranks)
      : s_(settings), ranks_(std::move(ranks)), cache_(settings.cache) {}

  void run() {
    find_folders();
    if (is_first()) take_folder();
    load();
    prepare_training();
    print_start();
    const StopSignals signals;
    loop();
    finish();
  }

 private:
  TextSources texts() const { return text_sources(folders_.model, loaded_->text_folder); }
  std::filesystem::path training_folder() const { return s_.output / "training"; }

  bool is_first() const { return speaks(ranks_); }

  void find_folders() {
    folders_ = pretrained::find_adapted(s_.model, s_.adapter);
    for (const std::filesystem::path& input : {folders_.model, folders_.adapter}) check_output(s_.output, input);
    require_one_adapter(s_.lora, folders_);
  }

  /// Locks the folder before any work that could not be saved.
  void take_folder() {
    folder_ = RunFolder(training_folder(), s_.fresh ? RunFolder::Start::fresh : RunFolder::Start::resume);
    AtomicFile::remove_leftovers(curve_file());
    if (const auto& checkpoint = folder_.checkpoint())
      for (const std::string& warning : checkpoint->warnings) print("warning: skipped: {}\n", warning);
  }

  void load() {
    loaded_.emplace(pretrained::load_adapted(folders_, [](const auto& folder) { return pretrained::load(folder); }));
    note_ignored_keys(folders_.model);
    if (const auto longest = model().model->context_length(); longest && s_.context > *longest)
      throw UserError(fmt::format("--context {}: the model has {} positions", s_.context, *longest),
                      "finetune_context", "give a smaller --context");
    data_.emplace(*loaded_, ExampleSettings{.data = s_.data,
                                            .text = s_.text,
                                            .sources = s_.sources,
                                            .valid = s_.valid,
                                            .batches = {.context = s_.context,
                                                        .batch = s_.batch,
                                                        .accumulate = s_.accumulate,
                                                        .pack = s_.pack,
                                                        .lengths = model().model->depends_on_length(),
                                                        .seed = s_.seed}});
    require_same_files();
    if (is_first()) print("{}", data_->story());
    if (!s_.samples.prompts.empty()) samples_.emplace(*loaded_, s_.samples, s_.seed);
    if (s_.lora) loaded_->lora = pretrained::add_lora(model(), parse_lora(*s_.lora), s_.seed);
    if (loaded_->lora) loaded_->lora->config.base_model = absolute_path(folders_.model).lexically_normal().string();
    if (is_first())
      check_save(s_.output, loaded_->lora ? files_written(*loaded_->lora) : files_written(model()), texts());
    trained_ = keep_trained_in_f32(*model().model);
  }

  /// Checks that all processes have read the same files.
  void require_same_files() const {
    if (!ranks_) return;
    require_agreement(*ranks_, {{"the data", data_->hash().substr(0, 16), "give all processes the same data"},
                                {"the model", digest_of_starts(model().weights).substr(0, 16),
                                 "give all processes the same directories"}});
  }

  void prepare_training() {
    if (s_.optimizer.lr == 0) s_.optimizer.lr = loaded_->lora ? adapter_rate : full_rate;
    const double updates = static_cast<double>(data_->training().updates_per_epoch());
    if (s_.optimizer.steps == 0)
      s_.optimizer.steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(s_.epochs * updates)));
    // Rows are padded to the longest example of their batch.
    const Dim B("B", s_.batch), T = s_.pack ? Dim("T", s_.context) : Dim("T");
    if (!s_.pack) sizes_.emplace("T", s_.context);
    const auto [forward, step] =
        step_graphs(*model().model, {.B = B, .T = T, .packed = s_.pack}, optimizer(),
                    {.clip_norm = s_.optimizer.clip, .accumulate = s_.accumulate, .precision = s_.precision});
    if (const std::string splits = take_default_splits(s_.division, forward); is_first()) print("{}", splits);
    sizes_ = sizes_on_process(std::move(sizes_), s_.division);
    require_same_settings(ranks_, {fixed_settings(), changeable_settings()});
    CompileOptions compile = compile_options(s_.target);
    compile.reserve = sizes_;
    compile.threads = s_.threads;
    compile.cache = cache_.enabled() ? &cache_ : nullptr;
    compile.lower.memory = memory_budget(s_.memory_budget, sizes_);
    divide(compile, s_.division, ranks_);
    const StartValue start = [&](const std::string& name) { return start_of(step, name); };
    trainer_.emplace(step, start, trainer_options(forward, compile));
    if (is_first())
      metrics_.emplace(training_folder() / "metrics.jsonl", updates_done(), updates_done() == s_.optimizer.steps);
  }

  /// Returns the start value of a weight. Weights that are whole on a process and keep their dtype stay in the mapped
  /// model files.
  HostTensor start_of(const ir::Graph& step, const std::string& name) {
    const Parameters& weights = model().weights;
    if (!weights.contains(name)) return initial_value(step, name, {}, s_.seed);
    const HostTensor& value = weights.get(name);
    const bool is_full = value.dtype() == f32 || value.dtype() == f64;
    return is_full || std::ranges::count(trained_, name) == 0 ? lend(value, weights.store()) : value.cast(f32);
  }

  /// Returns all current weights on the first process. Must be called by all processes.
  Parameters whole_weights() {
    Tensors trained = trainer_->wholes(trained_);
    Parameters weights = model().weights.borrowed();
    weights.set(std::move(trained));
    return weights;
  }

  AdamW optimizer() const {
    const OptimizerSettings& o = s_.optimizer;
    // With floor lr, the half cosine stays at the peak.
    return {.lr = o.schedule(s_.schedule == "constant" ? o.lr : o.lr / 10), .weight_decay = o.weight_decay};
  }

  TrainerOptions trainer_options(const ir::Graph& forward, const CompileOptions& compile) {
    TrainerOptions options{
        .folder = folder_,
        .save_every = s_.save_every * s_.accumulate,
        .save_constants = false,
        .settings = {.fixed = fixed_settings(), .changeable = changeable_settings()},
        .compile = compile,
        .after_step = [this](const StepReport& step) { after_step(step); },
        .after_evaluation_batch =
            [this](const EvaluationReport& report) {
              if (progress_) progress_->evaluation(report);
            },
        .after_evaluation = [this](const LossPoint& at) { after_evaluation(at.loss); },
        .after_save = [this](const std::filesystem::path&) { write_curve(); },
        .stop = [this] { return is_to_stop(progress_ ? &*progress_ : nullptr); },
        .advice = "with a smaller --lr, a smaller --clip or more --warmup",
    };
    if (const TokenBatches* valid = data_->validation()) {
      const std::int64_t count = validation_batches();
      options.evaluation =
          Evaluation{.graph = forward,
                     .batches = [valid, count](std::int64_t i) { return valid->evaluation(i, count); },
                     .count = count,
                     .every = s_.evaluate_every * s_.accumulate};
    }
    return options;
  }

  Settings fixed_settings() const {
    pretrained::LoraConfig lora = loaded_->lora ? loaded_->lora->config : pretrained::LoraConfig();
    lora.base_model.clear();  // a directory may be moved
    return {{"model", sha256_hex(model().config_text)},
            {"lora", loaded_->lora ? pretrained::lora_config_text(lora, false) : "none"},
            {"accumulate", fmt::format("{}", s_.accumulate)},
            {"precision", std::string(name(s_.precision))}};
  }

  Settings changeable_settings() const {
    Settings settings = s_.optimizer.to_strings();
    settings["schedule"] = s_.schedule;
    settings["batch"] = fmt::format("{}", s_.batch);
    settings["context"] = fmt::format("{}", s_.context);
    settings["pack"] = s_.pack ? "true" : "false";
    settings["seed"] = fmt::format("{}", s_.seed);
    settings["target"] = s_.target;
    settings["data"] = data_->hash();
    settings["processes"] = s_.division.is_given() ? s_.division.to_string() : "one";
    return settings;
  }

  /// Prints what is trained and the size of a step before the first one.
  void print_start() {
    if (!is_first()) return;
    std::int64_t all = 0, trained = 0, weight_bytes = 0, state_bytes = 0;
    for (const nn::Parameter& parameter : model().model->parameters()) {
      const std::int64_t count = parameter.shape().numel().evaluate({});
      all += count;
      trained += parameter.is_frozen() ? 0 : count;
    }
    for (const Program::Slot& slot : trainer_->executable().program().states)
      (slot.is_parameter ? weight_bytes : state_bytes) +=
          slot.shape.numel().evaluate({}) * static_cast<std::int64_t>(size_in_bytes(slot.dtype));
    const MemoryPlan plan = trainer_->executable().memory_plan(sizes_);
    if (ranks_) print("{} processes: {}; memory below is per process\n", ranks_->size(), s_.division.to_string());
    print("{}", trainer_->executable().summary().division);
    print("{}: {} parameters, {} trained ({:.2f}%)\n", model().model->kind(), format_count(static_cast<double>(all)),
          format_count(static_cast<double>(trained)), 100 * static_cast<double>(trained) / static_cast<double>(all));
    print("memory: {} of weights, {} of optimizer states, {} of activations at peak\n", format_bytes(weight_bytes),
          format_bytes(state_bytes), format_bytes(plan.arena_bytes));
    print("{} steps of {} rows of up to {} tokens; {:.1f} epochs\n", s_.optimizer.steps, s_.batch * s_.accumulate,
          s_.context,
          static_cast<double>(s_.optimizer.steps * s_.batch * s_.accumulate) /
              static_cast<double>(data_->training().rows()));
    if (const TokenBatches* valid = data_->validation(); valid && validation_batches() < valid->evaluation_batches())
      print("validation on the first {} of {} batches (--validation-batches 0 uses all)\n", validation_batches(),
            valid->evaluation_batches());
    for (const std::string& line : trainer_->changed_settings()) print("{}\n", line);
    if (const auto& checkpoint = folder_.checkpoint())
      print("resuming after step {} from the checkpoint in {}\n", updates_done(),
            visible(checkpoint->folder.string()));
  }

  /// Returns the number of batches of a validation. There must be validation examples.
  std::int64_t validation_batches() const {
    const std::int64_t all = data_->validation()->evaluation_batches();
    return s_.validation_batches == 0 ? all : std::min(s_.validation_batches, all);
  }

  std::int64_t updates_done() const { return trainer_->step() / s_.accumulate; }

  void loop() {
    const TokenBatches& batches = data_->training();
    const double tokens_per_row = static_cast<double>(batches.tokens()) / static_cast<double>(batches.rows());
    if (is_first())
      progress_.emplace(progress_on_output(tokens_per_row * static_cast<double>(s_.batch * s_.accumulate)));
    const bool done =
        trainer_->run([&](std::int64_t step) { return batches.training(step); }, s_.optimizer.steps * s_.accumulate);
    if (!done) end_stopped();
  }

  [[noreturn]] void end_stopped() {
    progress_.reset();
    end_stopped_run(updates_done(), visible(training_folder().string()), is_first());
  }

  void after_step(const StepReport& report) {
    tokens_ += data_->training().tokens_of(report.step - 1);
    seconds_ += report.seconds;
    if (report.step % s_.accumulate != 0) return;
    if (progress_)
      tell({.step = updates_done(),
            .last = s_.optimizer.steps,
            .loss = loss_of_update(updates_done()),
            .seconds = seconds_,
            .skipped = report.skipped,
            .outputs = report.outputs});
    tokens_ = 0, seconds_ = 0;
    if (samples_ && (updates_done() % s_.samples.every == 0 || updates_done() == s_.optimizer.steps)) write_samples();
  }

  void tell(const StepReport& update) {
    metrics_->write(update.step, {{"loss", update.loss},
                                  {"learning_rate", update.outputs.at("learning_rate").get(0)},
                                  {"grad_norm", update.outputs.at("grad_norm").get(0)},
                                  {"epoch", static_cast<double>(trainer_->step() * s_.batch) /
                                                static_cast<double>(data_->training().rows())},
                                  {"tokens", static_cast<double>(tokens_)},
                                  {"seconds", update.seconds}});
    progress_->step(update);
    if (!std::exchange(told_time_, true) && update.step < update.last)
      progress_->line(fmt::format("the first step took {:.2f} s; about {} for the remaining {} steps", update.seconds,
                                  format_duration(update.seconds * static_cast<double>(update.last - update.step)),
                                  update.last - update.step));
  }

  /// Generates samples on the first process. The others wait.
  void write_samples() {
    const Parameters weights = whole_weights();
    if (!is_first()) return;
    const std::vector<std::string> texts = samples_->write(*model().model, weights,
                                                           {.threads = s_.threads,
                                                            .cache = cache_.enabled() ? &cache_ : nullptr,
                                                            .target = compile_options(s_.target).target});
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string& prompt = s_.samples.prompts[i];
      progress_->line(fmt::format("step {:>5}  prompt \"{}\", sample \"{}\"", updates_done(), visible(prompt),
                                  visible(texts[i])));
      metrics_->write(updates_done(), {{"prompt", prompt}, {"sample", texts[i]}});
    }
  }

  void after_evaluation(double loss) {
    if (!is_first()) return;
    const std::string line =
        fmt::format("step {:>5}  validation loss {:.4f}, perplexity {:.3f}", updates_done(), loss, std::exp(loss));
    if (progress_)
      progress_->line(line);
    else
      print("{}\n", line);
    metrics_->write(updates_done(), {{"validation_loss", loss}, {"perplexity", std::exp(loss)}});
  }

  /// Returns the mean loss of an update's weighted batches.
  double loss_of_update(std::int64_t update) const {
    const std::vector<LossPoint>& all = trainer_->history().training;
    double sum = 0;
    for (std::int64_t i = (update - 1) * s_.accumulate; i < update * s_.accumulate; ++i)
      sum += all[static_cast<std::size_t>(i)].loss;
    return sum / static_cast<double>(s_.accumulate);
  }

  std::string data_name() const {
    for (const std::filesystem::path& path : {s_.data, s_.text, s_.sources})
      if (!path.empty()) return path.filename().string();
    return {};
  }

  std::filesystem::path curve_file() const { return training_folder() / "loss.svg"; }

  void write_curve() const {
    std::vector<LossPoint> training, validation = trainer_->history().evaluation;
    for (std::int64_t i = 1; i <= updates_done(); ++i) training.push_back({i, loss_of_update(i)});
    for (LossPoint& point : validation) point.step /= s_.accumulate;
    write_text(curve_file().string(), loss_curve_svg(fmt::format("{} on {}", model().model->kind(), data_name()),
                                                     training, validation, "token"));
  }

  /// Writes the model before the last validation, which may take long.
  void finish() {
    model().weights = whole_weights();
    if (is_first()) write_model();
    validate();
    progress_.reset();
    if (!is_first()) return;
    write_curve();
    print("{} in {}; metrics.jsonl and loss.svg in {}\n", loaded_->lora ? "adapter" : "model",
          visible(s_.output.string()), visible(training_folder().string()));
  }

  void write_model() {
    save_folder(s_.output, texts(), [&](FolderSave& save) {
      if (loaded_->lora)
        add_files(save, *loaded_->lora, model().weights);
      else
        add_as_stored(save, model());
    });
  }

  void validate() {
    if (!data_->validation()) return;
    const auto loss = trainer_->evaluate();
    if (!loss) end_stopped();
    after_evaluation(*loss);
  }

  pretrained::Pretrained& model() { return loaded_->model; }
  const pretrained::Pretrained& model() const { return loaded_->model; }

  FineTuneSettings s_;
  std::shared_ptr<Ranks> ranks_;  ///< null: a single process
  pretrained::AdaptedFolders folders_;
  DiskCache cache_;
  RunFolder folder_;
  std::optional<pretrained::AdaptedModel> loaded_;
  std::optional<ExampleData> data_;
  std::optional<Samples> samples_;
  std::vector<std::string> trained_;  ///< names of the trained parameters
  DimBindings sizes_;                 ///< of dims that the graph does not know
  std::optional<Trainer> trainer_;
  std::optional<MetricsFile> metrics_;
  std::optional<Progress> progress_;  ///< set while the loop runs
  std::int64_t tokens_ = 0;           ///< tokens of the current update so far
  double seconds_ = 0;                ///< seconds of the current update so far
  bool told_time_ = false;
};

}  // namespace

void fine_tune(const FineTuneSettings& settings) {
  const auto ranks = start_processes(settings.division, settings.processes, "finetune");
  run_processes(ranks, [&] { FineTuning(settings, ranks).run(); });
}

}  // namespace lathe::tools
