#include "models/finetune/new_model/text_training.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "frontend/initial_values.h"
#include "ir/support/error.h"
#include "models/finetune/new_model/text_codec.h"
#include "models/finetune/new_model/text_model.h"
#include "models/finetune/new_model/text_model_folder.h"
#include "models/finetune/run/averaged_weights.h"
#include "models/finetune/run/run_checks.h"
#include "models/finetune/run/run_context.h"
#include "models/text/corpus.h"
#include "runtime/files/sha256.h"
#include "runtime/files/write/atomic_file.h"
#include "runtime/ranks/agreement.h"
#include "runtime/train/trainer.h"

namespace lathe {

namespace {

std::string attention_text(AttentionFusion fusion) {
  switch (fusion) {
    case AttentionFusion::automatic: return "automatic";
    case AttentionFusion::off: return "off";
    case AttentionFusion::required: return "required";
  }
  throw InternalError("an attention fusion out of range");
}

void check_text_options(const TextTrainingOptions& o) {
  if (o.text.empty() == o.sources.empty())
    throw UserError(o.text.empty() ? "no text is given" : "both a text and a folder of sources are given",
                    "train_options", "give text, a file, or sources, a folder");
  if (o.output.empty())
    throw UserError("no output folder is given", "train_options", "set TextTrainingOptions::output");
  for (const auto& [name, value] : {std::pair{"steps", o.steps},
                                    {"batch", o.batch},
                                    {"context", o.model.context},
                                    {"evaluate_every", o.evaluate_every},
                                    {"save_every", o.save_every}})
    require_at_least(name, value, 1);
  require_at_least("validation_batches", o.validation_batches, 0);
  o.optimizer.check();
}

}  // namespace

/// A text, the model trained on it, and the training run.
class TextTraining::Run {
 public:
  explicit Run(TextTrainingOptions options)
      : o_((check_text_options(options), std::move(options))),
        optimizer_(o_.optimizer.with_defaults({.lr = 1e-3, .weight_decay = 0.1, .beta2 = 0.99})),
        run_(o_.compile, o_.observer) {
    settings_.TextModelOptions::operator=(o_.model);
  }

  TrainingResult run() {
    if (!trainer_) prepare();
    is_complete_ = false;
    const bool done = trainer_->run(
        [this](std::int64_t step) -> const Tensors& {
          train_batches_->random(step, batch_.at("tokens"));
          return batch_;
        },
        o_.steps);
    if (!done) return result({});
    // The last validation may take long, so the model is written first.
    generation_options_.parameters = averages_.whole_parameters(*trainer_);
    if (run_.is_first()) write_model_folder(model_folder(), settings_, *codec_, *generation_options_.parameters);
    is_complete_ = true;
    return result(validate());
  }

  /// Recomputes the whole window for each token. The sample is longer than the context, and sliding the window
  /// changes every token's position, so cached keys and values would be invalid.
  std::string sample(const TextSampleOptions& how, const std::function<void(std::string_view)>& piece) {
    require_at_least("length", how.length, 0);
    if (!is_complete_ || !run_.is_first())
      throw UserError("there is no trained model to sample from", "train_options",
                      "call sample() on the first process, after a run() that was not stopped");
    Sampler sampler(how.sampling, o_.seed);
    Executable generate = compile(generation_, generation_options_);
    std::vector<std::int64_t> tokens = codec_->encode(how.prompt.empty() ? "\n" : how.prompt);
    const auto text_of = codec_->stream();
    std::string text;
    for (std::int64_t i = 0; i < how.length && !(o_.stop && o_.stop()); ++i) {
      const auto seen = std::min<std::int64_t>(static_cast<std::int64_t>(tokens.size()), o_.model.context);
      HostTensor input(i64, {1, seen});
      for (std::int64_t j = 0; j < seen; ++j)
        input.set_int(j, tokens[tokens.size() - static_cast<std::size_t>(seen - j)]);
      const HostTensor logits = generate.run({{"tokens", input}}).at("logits");
      tokens.push_back(sampler.next(logits_row(logits, seen - 1)));
      const std::string more = text_of(tokens.back());
      if (piece) piece(more);
      text += more;
    }
    return text;
  }

 private:
  std::filesystem::path model_folder() const { return o_.output / "model"; }

  void prepare() {
    run_.take_folder(o_.output, o_.fresh);
    if (run_.is_first()) {
      AtomicFile::remove_leftovers(o_.output / "tokenizer.json");
      prepare_model_folder(model_folder());
    }
    prepare_text();
    prepare_model();
  }

  void prepare_text() {
    const std::string raw = text::read_training_text(o_.text, o_.sources);
    text_hash_ = sha256_hex(raw);
    if (run_.ranks())
      require_agreement(*run_.ranks(), {{"the text", text_hash_.substr(0, 16), "give all processes the same text"}});
    if (run_.is_first())
      codec_.emplace(run_.checkpoint() ? codec_of(*run_.checkpoint()) : TextCodec::make(o_.tokenizer, raw));
    if (run_.ranks())
      codec_.emplace(TextCodec::of_text(text_of_first(*run_.ranks(), run_.is_first() ? codec_->to_text() : "")));
    split_ = text::split_ids(codec_->encode(raw), o_.model.context, codec_->unit());
    settings_.vocab = codec_->size();
    const bool characters = codec_->unit() == "characters";
    run_.observer().text_read({.unit = codec_->unit(),
                               .bytes = static_cast<std::int64_t>(raw.size()),
                               .distinct = codec_->size() - (characters ? 1 : 0),
                               .training = static_cast<std::int64_t>(split_.train.size()),
                               .validation = static_cast<std::int64_t>(split_.validation.size())});
    if (!run_.is_first() || characters) return;
    // A resumed run reads the tokenizer again.
    AtomicFile file(o_.output / "tokenizer.json");
    file.write(codec_->tokenizer_json());
    file.commit();
  }

  /// Returns the codec of a checkpoint. The checkpoint's vocabulary is used, even if the source files have changed.
  TextCodec codec_of(const Checkpoint& checkpoint) const {
    const auto& config = checkpoint.meta.config;
    if (!o_.text.empty() && config.count("text") && config.at("text") != text_hash_)
      throw UserError(fmt::format("the checkpoint in {} was trained on another text", o_.output.string()),
                      "train_resume", "give another output folder, or start from scratch");
    return TextCodec::resumed(config, checkpoint.folder, o_.output);
  }

  void prepare_model() {
    TextModel model = build_text_model(settings_, optimizer_, o_.steps);
    parameter_count_ = model.model.count();
    run_.choose_splits(model.forward);
    averages_ = AveragedWeights(optimizer_, model.step);
    const DimBindings sizes{{"B", o_.batch}, {"T", o_.model.context}};
    sizes_ = run_.sizes_here(sizes);
    set_generation_options();
    CompileOptions training = run_.step_options(sizes_);
    if (const auto& chunks = training.lower.chunks; chunks && chunks->on) training.sizes = sizes;
    run_.require_same(fixed_settings(), changeable_settings());
    train_batches_.emplace(split_.train, o_.batch, o_.model.context, o_.seed);
    validation_batches_.emplace(split_.validation, o_.batch, o_.model.context, o_.seed);
    const StartValue start = [graph = model.step, initializers = model.model.initializers(), seed = o_.seed](
                                 const std::string& name) { return initial_value(graph, name, initializers, seed); };
    trainer_.emplace(model.step, start, trainer_options(averages_.evaluation(model.forward), training));
    generation_ = std::move(model.generate);
    report_start();
  }

  /// The options of the step, for one process.
  void set_generation_options() {
    generation_options_ = run_.compile();
    generation_options_.mode = Mode::evaluation;
    generation_options_.lower.memory.reset();
    generation_options_.tune.reset();
    generation_options_.ranks = nullptr;
    generation_options_.split.clear();
    generation_options_.parts = {};
  }

  Settings fixed_settings() const {
    Settings fixed = settings_.to_strings();
    fixed["tokenizer"] = o_.tokenizer;
    fixed.merge(optimizer_.fixed());
    return fixed;
  }

  /// Returns settings that affect results but may change when a run resumes, which is then reported.
  Settings changeable_settings() const {
    Settings settings = optimizer_.changeable(o_.steps);
    const auto& chunks = run_.compile().lower.chunks;
    settings["fused_attention"] = attention_text(run_.compile().lower.attention);
    settings["chunk_rows"] = !chunks ? "auto" : chunks->on ? fmt::format("{}", chunks->least_rows) : "off";
    settings["batch"] = fmt::format("{}", o_.batch);
    settings["seed"] = fmt::format("{}", o_.seed);
    settings["target"] = run_.compile().target.name;
    settings["processes"] = run_.sharding("one");
    return settings;
  }

  Settings kept_settings() const {
    Settings kept = codec_->kept();
    kept["text"] = text_hash_;
    return kept;
  }

  TrainerOptions trainer_options(const ir::Graph& evaluation, const CompileOptions& compile) {
    TrainerOptions options = run_.trainer_options(compile, fixed_settings(), changeable_settings());
    options.evaluation = Evaluation{.graph = evaluation,
                                    .batches = [this](std::int64_t i) -> const Tensors& {
                                      validation_batches_->sequential(i, batch_.at("tokens"));
                                      return batch_;
                                    },
                                    .count = frequent_batches(),
                                    .every = o_.evaluate_every};
    options.save_every = o_.save_every;
    options.settings.kept = kept_settings();
    options.after_step = [this](const StepReport& step) { run_.observer().step_done(step); };
    options.after_evaluation = [this](const LossPoint& at) {
      run_.observer().validated(validation(at.loss, frequent_batches()));
    };
    options.after_save = [this](const std::filesystem::path& to) { run_.observer().saved(to, trainer_->history()); };
    options.stop = o_.stop;
    options.advice = o_.advice;
    return options;
  }

  void report_start() {
    run_.report_start({.step = trainer_->executable(),
                       .sizes = sizes_,
                       .model = o_.model.kind,
                       .parameters = parameter_count_,
                       .trained = parameter_count_,
                       .rows_per_step = o_.batch,
                       .steps = o_.steps,
                       .tokens_per_step = static_cast<double>(o_.batch * o_.model.context),
                       .validation_batches = frequent_batches(),
                       .all_validation_batches = all_validation_batches(),
                       .completed = trainer_->step()},
                      *trainer_);
  }

  /// Returns the number of batches that contain each window of the validation text about once.
  std::int64_t all_validation_batches() const {
    return std::max<std::int64_t>(1, validation_batches_->windows() / o_.batch);
  }
  /// Returns the number of batches of a validation between steps.
  std::int64_t frequent_batches() const { return std::min<std::int64_t>(8, all_validation_batches()); }

  Validation validation(double loss, std::int64_t batches, bool is_last = false) const {
    return {.step = trainer_->step(),
            .loss = loss,
            .batches = batches,
            .all_batches = all_validation_batches(),
            .is_last = is_last};
  }

  std::optional<Validation> validate() {
    const std::int64_t all = all_validation_batches(),
                       count = o_.validation_batches == 0 ? all : std::min(o_.validation_batches, all);
    const auto loss = trainer_->evaluate(count);
    if (!loss) return std::nullopt;
    const Validation last = validation(*loss, count, true);
    run_.observer().validated(last);
    return last;
  }

  /// Without `last`, the run was stopped before the end of the last validation.
  TrainingResult result(const std::optional<Validation>& last) const {
    return {.steps = trainer_->step(), .stopped = !last, .history = trainer_->history(), .validation = last};
  }

  TextTrainingOptions o_;
  OptimizerSettings optimizer_;
  AveragedWeights averages_;
  RunContext run_;
  std::string text_hash_;
  std::optional<TextCodec> codec_;
  TextModelSettings settings_;
  text::SplitIds split_;
  std::optional<text::BatchSampler> train_batches_, validation_batches_;
  Tensors batch_{{"tokens", HostTensor()}};  ///< reused for each step
  std::int64_t parameter_count_ = 0;
  DimBindings sizes_;  ///< on one process
  std::optional<Trainer> trainer_;
  ir::Graph generation_;  ///< runs only on the first process
  CompileOptions generation_options_;
  bool is_complete_ = false;  ///< all steps are done and the model is written
};

TextTraining::TextTraining(TextTrainingOptions options) : run_(std::make_unique<Run>(std::move(options))) {}
TextTraining::~TextTraining() = default;
TextTraining::TextTraining(TextTraining&&) noexcept = default;
TextTraining& TextTraining::operator=(TextTraining&&) noexcept = default;

TrainingResult TextTraining::run() { return run_->run(); }

std::string TextTraining::sample(const TextSampleOptions& options,
                                 const std::function<void(std::string_view piece)>& piece) {
  return run_->sample(options, piece);
}

}  // namespace lathe
