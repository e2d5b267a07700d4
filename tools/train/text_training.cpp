#include "tools/train/text_training.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "frontend/initial_values.h"
#include "ir/support/visible.h"
#include "ir/tensor/explain/explain.h"
#include "models/finetune/new_model/text_codec.h"
#include "models/finetune/new_model/text_model_folder.h"
#include "models/text/corpus.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/sha256.h"
#include "runtime/ranks/agreement.h"
#include "runtime/train/trainer.h"
#include "tools/files.h"
#include "tools/options/memory_budget.h"
#include "tools/options/target_option.h"
#include "tools/options/tune_option.h"
#include "tools/stop_signals.h"
#include "tools/streams.h"
#include "tools/train/loss_curve.h"
#include "tools/train/training_output.h"

namespace lathe::tools {

namespace {

std::string attention_text(AttentionFusion fusion) {
  switch (fusion) {
    case AttentionFusion::automatic: return "automatic";
    case AttentionFusion::off: return "off";
    case AttentionFusion::required: return "required";
  }
  throw InternalError("an attention fusion out of range");
}

/// Returns settings that affect results but may change when a run resumes, which is then reported.
Settings changeable_settings(const TrainSettings& s) {
  Settings settings = s.optimizer.to_strings();
  const auto& chunks = s.lower.chunks;
  settings["fused_attention"] = attention_text(s.lower.attention);
  settings["chunk_rows"] = !chunks ? "auto" : chunks->on ? fmt::format("{}", chunks->least_rows) : "off";
  settings["batch"] = fmt::format("{}", s.batch);
  settings["seed"] = fmt::format("{}", s.seed);
  settings["target"] = s.target;
  settings["processes"] = s.division.is_given() ? s.division.to_string() : "one";
  return settings;
}

/// A text, the model trained on it, and the training run.
class TextTraining {
 public:
  TextTraining(const TrainSettings& settings, std::shared_ptr<Ranks> ranks)
      : s_(settings), ranks_(std::move(ranks)), cache_(settings.cache), sampler_(settings.sampling, settings.seed) {}

  void run() {
    if (is_first()) take_folder();
    prepare_text();
    prepare_model();
    print_start();
    const StopSignals signals;
    loop();
    write_model();
    validate();
    sample();
  }

 private:
  std::string folder() const { return visible(s_.output.string()); }

  bool is_first() const { return speaks(ranks_); }
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) const {
    if (is_first()) print_text(fmt::format(format, std::forward<Args>(args)...));
  }

  /// Locks the folder before any work that could not be saved.
  void take_folder() {
    folder_ = RunFolder(s_.output, s_.fresh ? RunFolder::Start::fresh : RunFolder::Start::resume);
    AtomicFile::remove_leftovers(curve_file());
    AtomicFile::remove_leftovers(s_.output / "tokenizer.json");
    prepare_model_folder(s_.output / "model");
    if (const auto& checkpoint = folder_.checkpoint())
      for (const std::string& warning : checkpoint->warnings) print("warning: skipped: {}\n", warning);
  }

  void prepare_text() {
    const std::string raw = text::read_training_text(s_.text, s_.sources);
    characters_ = raw.size();
    text_hash_ = sha256_hex(raw);
    if (ranks_)
      require_agreement(*ranks_, {{"the text", text_hash_.substr(0, 16), "give all processes the same text"}});
    if (is_first())
      codec_.emplace(folder_ && folder_.checkpoint() ? codec_of(*folder_.checkpoint())
                                                     : TextCodec::make(s_.tokenizer, raw));
    if (ranks_) codec_.emplace(TextCodec::of_text(text_of_first(*ranks_, is_first() ? codec_->to_text() : "")));
    sample_ = codec_->encode(s_.prompt.empty() ? "\n" : s_.prompt);
    split_ = text::split_ids(codec_->encode(raw), s_.model.context, codec_->unit());
    s_.model.vocab = codec_->size();
    say("text: {} {}, {} distinct; {} to train on, {} to validate\n", split_.train.size() + split_.validation.size(),
        codec_->unit(), codec_->size() - (codec_->unit() == "characters" ? 1 : 0),
        format_count(static_cast<double>(split_.train.size())),
        format_count(static_cast<double>(split_.validation.size())));
    // A resumed run reads the tokenizer again.
    if (is_first() && codec_->unit() == "tokens")
      write_text((s_.output / "tokenizer.json").string(), codec_->tokenizer_json());
  }

  /// Returns the codec of a checkpoint. The checkpoint's vocabulary is used, even if the source files have changed.
  TextCodec codec_of(const Checkpoint& checkpoint) const {
    const auto& config = checkpoint.meta.config;
    if (!s_.text.empty() && config.count("text") && config.at("text") != text_hash_)
      throw UserError(fmt::format("the checkpoint in {} was trained on another text", s_.output.string()),
                      "train_resume", "give another --output, or --fresh to start from scratch");
    return TextCodec::resumed(config, checkpoint.folder, s_.output);
  }

  void prepare_model() {
    LanguageModel model = build_language_model(s_.model, s_.optimizer);
    if (s_.print_graph) say("\n{}\n", ir::print_short(model.forward));
    say("{}", take_default_splits(s_.division, model.forward));
    parameter_count_ = model.model.count();
    const DimBindings sizes{{"B", s_.batch}, {"T", s_.model.context}};
    CompileOptions options = compile_options(s_.target, ranks_);
    options.threads = s_.threads;
    options.cache = cache_.enabled() ? &cache_ : nullptr;
    options.lower = s_.lower;
    CompileOptions training = options;
    divide(training, s_.division, ranks_);
    training.lower.memory = memory_budget(s_.memory_budget, sizes_on_process(sizes, s_.division));
    training.sizes = sizes_for_chunks(s_.lower, sizes);
    training.tune = tune_options(s_.tune, sizes);
    require_same_settings(ranks_, {fixed_settings(), changeable_settings(s_)});
    train_batches_.emplace(split_.train, s_.batch, s_.model.context, s_.seed);
    validation_batches_.emplace(split_.validation, s_.batch, s_.model.context, s_.seed);
    const std::vector<Initializer> initializers = model.model.initializers();
    const StartValue start = [&](const std::string& name) {
      return initial_value(model.step, name, initializers, s_.seed);
    };
    trainer_.emplace(model.step, start, trainer_options(model.forward, training));
    generation_ = std::move(model.generate);
    generation_options_ = options;
    generation_options_.mode = Mode::evaluation;
  }

  Settings fixed_settings() const {
    Settings fixed = s_.model.to_strings();
    fixed["tokenizer"] = s_.tokenizer;
    return fixed;
  }

  Settings kept_settings() const {
    Settings kept = codec_->kept();
    kept["text"] = text_hash_;
    return kept;
  }

  TrainerOptions trainer_options(const ir::Graph& forward, const CompileOptions& compile) {
    return {
        .evaluation = Evaluation{.graph = forward,
                                 .batches = [this](std::int64_t i) -> const Tensors& {
                                   validation_batches_->sequential(i, batch_.at("tokens"));
                                   return batch_;
                                 },
                                 .count = std::min<std::int64_t>(8, validation_batch_count()),
                                 .every = s_.evaluate_every},
        .folder = folder_,
        .save_every = s_.save_every,
        .settings = {.fixed = fixed_settings(), .changeable = changeable_settings(s_), .kept = kept_settings()},
        .compile = compile,
        .after_step =
            [this](const StepReport& step) {
              if (progress_) progress_->step(step);
            },
        .after_evaluation_batch =
            [this](const EvaluationReport& report) {
              if (progress_) progress_->evaluation(report);
            },
        .after_evaluation =
            [this](const LossPoint& at) {
              if (progress_) progress_->line(fmt::format("step {:>5}  validation loss {:.3f}", at.step, at.loss));
            },
        .after_save = [this](const std::filesystem::path&) { write_curve(); },
        .stop = [this] { return is_to_stop(progress_ ? &*progress_ : nullptr); },
        .advice = "with a smaller --lr, a smaller --clip or more --warmup",
    };
  }

  void print_start() {
    if (!is_first()) return;
    const Executable& step = trainer_->executable();
    const CompileSummary& c = step.summary();
    if (c.tuned) print("{}", to_string(*c.tuned));
    if (ranks_) print("{} processes: {}; numbers below are per process\n", ranks_->size(), s_.division.to_string());
    print("{}", c.division);
    const MemoryPlan plan =
        step.memory_plan(sizes_on_process({{"B", s_.batch}, {"T", s_.model.context}}, s_.division));
    print(
        "training step: {} ops in {} fused regions, {} launches of {} distinct kernels; {} compiled, {} from the "
        "cache, in {:.2f} s\n",
        c.ops, step.program().regions, c.launches, c.kernels, c.compiled, c.from_cache,
        c.pass_seconds + c.lower_seconds + c.codegen_seconds);
    print("memory: {} planned at peak, {} for parameters, moments and results\n", format_bytes(plan.arena_bytes),
          format_bytes(plan.argument_bytes));
    print("{} parameters; batches of {} x {} {}; {} steps\n", format_count(static_cast<double>(parameter_count_)),
          s_.batch, s_.model.context, codec_->unit(), s_.optimizer.steps);
    for (const std::string& line : trainer_->changed_settings()) print("{}\n", line);
    if (const auto& checkpoint = folder_.checkpoint())
      print("resuming after step {} from the checkpoint in {}\n", trainer_->step(),
            visible(checkpoint->folder.string()));
  }

  /// Trains up to the last step, a signal, or the loss of standard output. The completed work is saved first.
  void loop() {
    if (is_first()) progress_.emplace(progress_on_output(static_cast<double>(s_.batch * s_.model.context)));
    const bool done = trainer_->run(
        [this](std::int64_t step) -> const Tensors& {
          train_batches_->random(step, batch_.at("tokens"));
          return batch_;
        },
        s_.optimizer.steps);
    if (!done) end_stopped();
  }

  [[noreturn]] void end_stopped() {
    progress_.reset();
    end_stopped_run(trainer_->step(), folder(), is_first());
  }

  /// Returns the number of batches that contain each window of the validation text about once.
  std::int64_t validation_batch_count() const {
    return std::max<std::int64_t>(1, validation_batches_->windows() / s_.batch);
  }

  std::filesystem::path curve_file() const { return s_.output / "loss.svg"; }

  void write_curve() const {
    const LossHistory& history = trainer_->history();
    write_text(curve_file().string(), loss_curve_svg(fmt::format("{} on {} characters", s_.model.model, characters_),
                                                     history.training, history.evaluation));
  }

  /// Writes the model before the last validation, which may take long.
  void write_model() {
    generation_options_.parameters = trainer_->whole_parameters();
    if (is_first()) write_model_folder(s_.output / "model", s_.model, *codec_, *generation_options_.parameters);
  }

  void validate() {
    const std::int64_t all = validation_batch_count(),
                       count = s_.validation_batches == 0 ? all : std::min(s_.validation_batches, all);
    const auto loss = trainer_->evaluate(count);
    if (!loss) end_stopped();
    progress_.reset();
    if (!is_first()) return;
    write_curve();
    print("validation loss {:.3f} nats per {} over {}\n", *loss, codec_->unit().substr(0, codec_->unit().size() - 1),
          count == all ? "the whole validation text"
                       : fmt::format("{} of {} batches of the validation text", count, all));
    print("checkpoint and loss.svg in {}; the model for lathe generate and transformers in {}\n", folder(),
          visible((s_.output / "model").string()));
  }

  /// Recomputes the whole window for each token. The sample is longer than the context, and sliding the window
  /// changes every token's position, so cached keys and values would be invalid.
  void sample() {
    if (s_.sample <= 0 || !is_first()) return;
    Executable generate = compile(generation_, generation_options_);
    std::vector<std::int64_t>& tokens = sample_;
    const auto text_of = codec_->stream();
    print("\n--- a sample, temperature {:.1f} ---\n{}", s_.sampling.temperature, s_.prompt == "\n" ? "" : s_.prompt);
    for (std::int64_t i = 0; i < s_.sample && StopSignals::received() == 0; ++i) {
      const auto seen = std::min<std::int64_t>(static_cast<std::int64_t>(tokens.size()), s_.model.context);
      HostTensor input(i64, {1, seen});
      for (std::int64_t j = 0; j < seen; ++j)
        input.set_int(j, tokens[tokens.size() - static_cast<std::size_t>(seen - j)]);
      const HostTensor logits = generate.run({{"tokens", input}}).at("logits");
      tokens.push_back(sampler_.next(logits_row(logits, seen - 1)));
      print_text(text_of(tokens.back()));
    }
    print("\n");
    if (StopSignals::received() != 0) throw Stopped(StopSignals::received());
  }

  TrainSettings s_;
  std::shared_ptr<Ranks> ranks_;  ///< null: a single process
  DiskCache cache_;
  RunFolder folder_;
  std::string text_hash_;
  std::size_t characters_ = 0;
  std::optional<TextCodec> codec_;
  text::SplitIds split_;
  std::optional<text::BatchSampler> train_batches_, validation_batches_;
  Tensors batch_{{"tokens", HostTensor()}};  ///< reused for each step
  std::int64_t parameter_count_ = 0;
  std::optional<Trainer> trainer_;
  Sampler sampler_;
  std::vector<std::int64_t> sample_;  ///< the prompt and the sampled tokens
  ir::Graph generation_;              ///< runs only on the first process
  CompileOptions generation_options_;
  std::optional<Progress> progress_;  ///< set while the loop runs
};

}  // namespace

void train(const TrainSettings& settings) {
  const auto ranks = start_processes(settings.division, settings.processes, "train");
  run_processes(ranks, [&] { TextTraining(settings, ranks).run(); });
}

}  // namespace lathe::tools
