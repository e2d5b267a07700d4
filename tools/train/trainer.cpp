#include "tools/train/trainer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "frontend/initialize.h"
#include "frontend/text/corpus.h"
#include "ir/support/visible.h"
#include "ir/tensor/explain.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/executable.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/checkpoint.h"
#include "runtime/files/file_lock.h"
#include "runtime/files/finite.h"
#include "runtime/files/sha256.h"
#include "tools/files.h"
#include "tools/memory_budget.h"
#include "tools/stop_signals.h"
#include "tools/streams.h"
#include "tools/target.h"
#include "tools/train/divergence.h"
#include "tools/train/history.h"
#include "tools/train/loss_curve.h"
#include "tools/train/progress.h"
#include "tools/train/resume.h"
#include "tools/tune.h"

namespace lathe::tools {

namespace {

std::string load_training_text(const TrainSettings& s) {
  if (!s.text.empty()) return text::read_text(s.text);
  return text::read_folder(s.sources, {".h", ".cpp", ".md", ".txt", ".js", ".css", ".sh", ".cmake"});
}

std::string attention_text(AttentionFusion fusion) {
  switch (fusion) {
    case AttentionFusion::automatic: return "automatic";
    case AttentionFusion::off: return "off";
    case AttentionFusion::required: return "required";
  }
  throw InternalError("an attention fusion out of range");
}

/// What changes the results of a run, and may be otherwise than in the one that it goes on from, if it says so.
Settings changeable_settings(const TrainSettings& s) {
  Settings settings = s.optimizer.to_strings();
  const auto& chunks = s.lower.chunks;
  settings["fused_attention"] = attention_text(s.lower.attention);
  settings["chunk_rows"] = !chunks ? "auto" : chunks->on ? fmt::format("{}", chunks->least_rows) : "off";
  settings["batch"] = fmt::format("{}", s.batch);
  settings["seed"] = fmt::format("{}", s.seed);
  settings["target"] = s.target;
  return settings;
}

class Trainer {
 public:
  explicit Trainer(const TrainSettings& settings)
      : s_(settings),
        cache_(settings.cache),
        store_(settings.output / "checkpoints"),
        diverged_(settings.output / "diverged", 1, CheckpointStore::States::any) {}

  void run() {
    open_output_folder();
    find_checkpoint();
    prepare_text();
    prepare_model();
    restore_or_start();
    const StopSignals signals;
    loop();
    report_final();
    sample();
  }

 private:
  std::string folder() const { return visible(s_.output.string()); }

  /// Before any work is done that could not be kept. The folder is this run's until the process ends.
  void open_output_folder() {
    std::error_code failed;
    std::filesystem::create_directories(s_.output, failed);
    if (failed || access(s_.output.c_str(), W_OK) != 0)
      throw UserError(fmt::format("cannot write to {}{}", s_.output.string(), failed ? ": " + failed.message() : ""),
                      "file_write", "give another --output");
    const std::filesystem::path file = s_.output / ".lock";
    lock_ = FileLock::take(file);
    if (!lock_)
      throw UserError(fmt::format("{} is training in {}", FileLock::holder(file), s_.output.string()), "train_locked",
                      "wait until it is done, end it, or give another --output");
    store_.remove_leftovers();
    diverged_.remove_leftovers();
    AtomicFile::remove_leftovers(curve_file());
  }

  void find_checkpoint() {
    if (s_.fresh) return;
    checkpoint_ = store_.load_newest();
    if (!checkpoint_) return;
    for (const std::string& warning : checkpoint_->warnings) print("warning: passed over: {}\n", warning);
  }

  void prepare_text() {
    const std::int64_t length = s_.model.context;
    const std::string raw = load_training_text(s_);
    characters_ = raw.size();
    text_hash_ = sha256_hex(raw);
    if (checkpoint_) {
      // The sources may have changed since: the text of the checkpoint's vocabulary is what counts.
      const auto& config = checkpoint_->meta.config;
      if (!s_.text.empty() && config.count("text") && config.at("text") != text_hash_)
        throw UserError(fmt::format("the checkpoint in {} was trained on another text", s_.output.string()),
                        "train_resume", "give another --output, or --fresh to start anew");
      const auto characters = config.find("characters");
      if (characters == config.end())
        throw UserError(fmt::format("the checkpoint {} has no vocabulary: its state.json lacks config.characters",
                                    checkpoint_->folder.string()),
                        "train_resume", "give another --output, or --fresh to start anew");
      corpus_.emplace(text::make_corpus(raw, length, text::Vocabulary::from_characters(characters->second)));
    } else {
      corpus_.emplace(text::make_corpus(raw, length));
    }
    s_.model.vocab = corpus_->vocabulary.size();
    print("text: {} characters, {} distinct; {} to train on, {} to validate\n",
          corpus_->train.size() + corpus_->validation.size(), corpus_->vocabulary.size() - 1,
          format_count(static_cast<double>(corpus_->train.size())),
          format_count(static_cast<double>(corpus_->validation.size())));
  }

  void prepare_model() {
    LanguageModel model = build_language_model(s_.model, s_.optimizer);
    print("\n{}\n", ir::print_short(model.forward));
    model_ = model.model;
    step_graph_ = model.step;
    CompileOptions options = compile_options(s_.target);
    options.threads = s_.threads;
    options.cache = cache_.enabled() ? &cache_ : nullptr;
    options.lower = s_.lower;
    options.parameters = weights_;
    CompileOptions training = options;
    const DimBindings sizes{{"B", s_.batch}, {"T", s_.model.context}};
    training.lower.memory = memory_budget(s_.memory_budget, sizes);
    training.tune = tune_options(s_.tune, sizes);
    exe_.emplace(compile(sized_for_chunks(model.step, s_.lower, sizes), training));
    options.mode = Mode::evaluation;
    evaluate_.emplace(compile(model.forward, options));
    generate_.emplace(compile(model.generate, options));
    print_summary();
  }

  void print_summary() const {
    const CompileSummary& c = exe_->summary();
    if (c.tuned) print("{}", to_string(*c.tuned));
    const MemoryPlan plan = exe_->memory_plan({{"B", s_.batch}, {"T", s_.model.context}});
    print(
        "training step: {} ops in {} fused regions, {} launches of {} distinct kernels; {} compiled, {} from the "
        "cache, in {:.2f} s\n",
        c.ops, exe_->program().regions, c.launches, c.kernels, c.compiled, c.from_cache,
        c.pass_seconds + c.lower_seconds + c.codegen_seconds);
    print("memory: {} planned at the peak, {} for parameters, moments and results\n", format_bytes(plan.arena_bytes),
          format_bytes(plan.argument_bytes));
  }

  void restore_or_start() {
    weights_.set(initial_values(step_graph_, model_.initializers(), s_.seed));
    print("{} parameters; batches of {} x {} characters; {} steps\n",
          format_count(static_cast<double>(model_.count())), s_.batch, s_.model.context, s_.optimizer.steps);
    if (checkpoint_) restore(*checkpoint_);
  }

  void restore(const Checkpoint& checkpoint) {
    const CheckpointMeta& meta = checkpoint.meta;
    check_same_settings(meta.config, s_.model.to_strings(), s_.output.string());
    for (const std::string& line : changed_settings(meta.values, changeable_settings(s_))) print("{}\n", line);
    for (const auto& slot : exe_->program().states) weights_.set(slot.name, checkpoint.tensors.tensor(slot.name));
    history_ = History::of(checkpoint);
    step_ = meta.step;
    saved_ = step_;
    print("going on after step {} of the checkpoint in {}\n", step_, visible(checkpoint.folder.string()));
  }

  /// Up to the last step, or until a signal, or where nobody can be told any more: what was computed is saved first.
  void loop() {
    const text::BatchSampler sampler(corpus_->train, s_.batch, s_.model.context, s_.seed);
    const std::int64_t last = s_.optimizer.steps;
    Progress progress(step_, last, static_cast<double>(s_.batch * s_.model.context));
    while (step_ < last && StopSignals::received() == 0 && !progress.output_is_lost()) {
      const ir::Tensors out = exe_->run({{"tokens", sampler.random(step_)}});
      ++step_;
      after_step(out, progress);
      if (step_ % s_.evaluate_every == 0 && step_ < last) {
        if (const auto loss = validation_loss(8)) {
          history_.validation.push_back({step_, *loss});
          progress.line(fmt::format("step {:>5}  validation loss {:.3f}", step_, *loss));
        }
      }
      if (step_ % s_.save_every == 0) save();
    }
    progress.finish();
    if (saved_ != step_) save();
    if (step_ < last) stopped();
  }

  void after_step(const ir::Tensors& out, Progress& progress) {
    const double loss = out.at("loss").get(0);
    const auto skipped = out.find("skipped");
    const bool skips = skipped != out.end() && skipped->second.get(0) != 0;
    history_.training.push_back({step_, loss});
    if (const auto why = divergence_.after_step(step_, loss, skips)) diverged(*why);
    progress.step(step_, loss, out.at("learning_rate").get(0));
    if (skips)
      progress.line(fmt::format("step {:>5}  skipped: a gradient is not finite at the loss scale {:.0f}", step_,
                                out.at("loss_scale").get(0)));
  }

  /// The run ends before its last step, with all of it saved.
  [[noreturn]] void stopped() const {
    const int signal = StopSignals::received();
    try {
      print("Stopped after step {}. Checkpoint in {}; start the same command again to go on.\n", step_, folder());
    } catch (const UserError&) {
      if (signal == 0) throw;  // a terminal that hung up takes no more words
    }
    throw Stopped(signal);
  }

  /// What is computed from here on is of no use. It is kept apart, where no run goes on from it.
  [[noreturn]] void diverged(const std::string& why) {
    std::string hint = "with a smaller --lr, a smaller --clip or more --warmup";
    if (saved_)
      hint = fmt::format("start again{} {}: it goes on after step {}, the last good checkpoint",
                         s_.fresh ? " without --fresh" : "", hint, *saved_);
    else
      hint = fmt::format("start again {}; there is no checkpoint of this run to go on from", hint);
    try {
      hint += fmt::format("\n  the state as it is now: {}", save_to(diverged_));
    } catch (const UserError& error) {
      hint += fmt::format("\n  the state as it is now cannot be kept: {}", error.what());
    }
    throw UserError(why, "train_diverged", hint);
  }

  /// The mean over at most `batches` batches of the validation text; nothing where a signal came.
  std::optional<double> validation_loss(std::int64_t batches) {
    const text::BatchSampler sampler(corpus_->validation, s_.batch, s_.model.context, s_.seed);
    batches = std::min(batches, std::max<std::int64_t>(1, sampler.windows() / s_.batch));
    double sum = 0;
    for (std::int64_t i = 0; i < batches; ++i) {
      if (StopSignals::received() != 0) return std::nullopt;
      sum += evaluate_->run({{"tokens", sampler.sequential(i)}}).at("loss").get(0);
    }
    return sum / static_cast<double>(batches);
  }

  void save() {
    if (const auto found = find_not_finite(states()))
      diverged(fmt::format("the state after step {} is not finite: {}", step_, found->to_string()));
    save_to(store_);
    saved_ = step_;
  }

  /// The present values of all that the training step works on.
  std::vector<TensorView> states() const {
    std::vector<TensorView> views;
    for (const std::string& name : weights_.names()) views.push_back(view_of(name, weights_.get(name)));
    return views;
  }

  /// Gives the checkpoint's folder.
  std::string save_to(const CheckpointStore& store) const {
    CheckpointMeta meta{.step = step_,
                        .data_position = step_,
                        .ir_hash = {},
                        .config = s_.model.to_strings(),
                        .values = changeable_settings(s_)};
    meta.config["characters"] = corpus_->vocabulary.characters();
    meta.config["text"] = text_hash_;
    std::vector<TensorView> records;
    const std::map<std::string, HostTensor> history = history_.tensors();
    for (const auto& [name, value] : history) records.push_back(view_of(name, value));
    const std::filesystem::path saved = store.save(meta, states(), records);
    write_text(curve_file().string(), loss_curve_svg(fmt::format("{} on {} characters", s_.model.model, characters_),
                                                     history_.training, history_.validation));
    return saved.string();
  }

  std::filesystem::path curve_file() const { return s_.output / "loss.svg"; }

  void report_final() {
    const auto loss = validation_loss(1 << 20);
    if (!loss) stopped();
    if (history_.validation.empty() || history_.validation.back().step != step_) {
      history_.validation.push_back({step_, *loss});
      save();
    }
    print("validation loss {:.3f} nats a character over the whole validation text\n", *loss);
    print("checkpoint and loss.svg in {}\n", folder());
  }

  void sample() {
    if (s_.sample <= 0) return;
    std::vector<std::int64_t> tokens = corpus_->vocabulary.encode(s_.prompt.empty() ? "\n" : s_.prompt);
    Sampler sampler(s_.sampling, s_.seed);
    print("\n--- a sample, temperature {:.1f} ---\n{}", s_.sampling.temperature, s_.prompt == "\n" ? "" : s_.prompt);
    for (std::int64_t i = 0; i < s_.sample && StopSignals::received() == 0; ++i) {
      const auto seen = std::min<std::int64_t>(static_cast<std::int64_t>(tokens.size()), s_.model.context);
      HostTensor input(i64, {1, seen});
      for (std::int64_t j = 0; j < seen; ++j)
        input.set_int(j, tokens[tokens.size() - static_cast<std::size_t>(seen - j)]);
      const HostTensor logits = generate_->run({{"tokens", input}}).at("logits");
      tokens.push_back(sampler.next(logits_row(logits, seen - 1)));
      print_text(corpus_->vocabulary.decode({tokens.back()}));
    }
    print("\n");
    if (StopSignals::received() != 0) throw Stopped(StopSignals::received());
  }

  TrainSettings s_;
  DiskCache cache_;
  CheckpointStore store_, diverged_;
  std::optional<FileLock> lock_;
  std::string text_hash_;
  std::size_t characters_ = 0;
  std::optional<Checkpoint> checkpoint_;
  std::optional<text::Corpus> corpus_;
  nn::Module model_;
  ir::Graph step_graph_;
  Parameters weights_;
  std::optional<Executable> exe_, evaluate_, generate_;
  History history_;
  DivergenceCheck divergence_;
  std::int64_t step_ = 0;
  std::optional<std::int64_t> saved_;  ///< the step of the newest checkpoint of this run, or that it goes on from
};

}  // namespace

void train(const TrainSettings& settings) { Trainer(settings).run(); }

}  // namespace lathe::tools
