#include "tools/train/trainer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <optional>

#include "frontend/initialize.h"
#include "frontend/text/corpus.h"
#include "ir/tensor/explain.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/executable.h"
#include "runtime/files/checkpoint.h"
#include "runtime/files/sha256.h"
#include "tools/files.h"
#include "tools/memory_budget.h"
#include "tools/target.h"
#include "tools/train/loss_curve.h"
#include "tools/train/progress.h"
#include "tools/tune.h"

namespace lathe::tools {

namespace {

// A signal handler can only reach a global.
volatile std::sig_atomic_t interrupted = 0;
void on_interrupt(int) {
  if (interrupted) std::_Exit(130);  // asked twice: at once
  interrupted = 1;
}

/// Takes Ctrl-C over while it lives.
class InterruptGuard {
 public:
  InterruptGuard() : old_(std::signal(SIGINT, on_interrupt)) { interrupted = 0; }
  ~InterruptGuard() { std::signal(SIGINT, old_); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*old_)(int);
};

std::string load_training_text(const TrainSettings& s) {
  if (!s.text.empty()) return text::read_text(s.text);
  return text::read_folder(s.sources, {".h", ".cpp", ".md", ".txt", ".js", ".css", ".sh", ".cmake"});
}

class Trainer {
 public:
  explicit Trainer(const TrainSettings& settings)
      : s_(settings),
        cache_(settings.cache),
        store_(settings.output / "checkpoints"),
        raw_(load_training_text(settings)) {}

  void run() {
    make_output_folder();
    find_checkpoint();
    prepare_text();
    prepare_model();
    restore_or_start();
    const InterruptGuard guard;
    const bool finished = loop();
    if (!finished) {
      fmt::print("Stopped after step {}. Checkpoint in {}; start the same command again to go on.\n", step_,
                 s_.output.string());
      return;
    }
    report_final();
    sample();
  }

 private:
  /// Before any work is done that could not be kept.
  void make_output_folder() const {
    std::error_code failed;
    std::filesystem::create_directories(s_.output, failed);
    if (failed || access(s_.output.c_str(), W_OK) != 0)
      throw UserError(fmt::format("cannot write to {}{}", s_.output.string(), failed ? ": " + failed.message() : ""),
                      "file_write", "give another --output");
  }

  void find_checkpoint() {
    if (s_.fresh) return;
    checkpoint_ = store_.load_newest();
    if (!checkpoint_) return;
    for (const std::string& warning : checkpoint_->warnings) fmt::print("warning: {}\n", warning);
  }

  void prepare_text() {
    const std::int64_t length = s_.model.context;
    const std::string hash = sha256_hex(raw_);
    if (checkpoint_) {
      // The sources may have changed since: the text of the checkpoint's vocabulary is what counts.
      const auto& config = checkpoint_->meta.config;
      if (!s_.text.empty() && config.count("text") && config.at("text") != hash)
        throw UserError(fmt::format("the checkpoint in {} was trained on another text", s_.output.string()),
                        "train_resume", "give another --output, or --fresh to start anew");
      corpus_.emplace(text::make_corpus(raw_, length, text::Vocabulary::from_characters(config.at("characters"))));
    } else {
      corpus_.emplace(text::make_corpus(raw_, length));
    }
    text_hash_ = hash;
    s_.model.vocab = corpus_->vocabulary.size();
    fmt::print("text: {} characters, {} distinct; {} to train on, {} to validate\n",
               corpus_->train.size() + corpus_->validation.size(), corpus_->vocabulary.size() - 1,
               format_count(static_cast<double>(corpus_->train.size())),
               format_count(static_cast<double>(corpus_->validation.size())));
  }

  void prepare_model() {
    LanguageModel model = build_language_model(s_.model, s_.optimizer);
    fmt::print("\n{}\n", ir::print_short(model.forward));
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
    if (c.tuned) fmt::print("{}", to_string(*c.tuned));
    const MemoryPlan plan = exe_->memory_plan({{"B", s_.batch}, {"T", s_.model.context}});
    fmt::print(
        "training step: {} ops in {} fused regions, {} launches of {} distinct kernels; {} compiled, {} from the "
        "cache, in {:.2f} s\n",
        c.ops, exe_->program().regions, c.launches, c.kernels, c.compiled, c.from_cache,
        c.pass_seconds + c.lower_seconds + c.codegen_seconds);
    fmt::print("memory: {} planned at the peak, {} for parameters, moments and results\n",
               format_bytes(plan.arena_bytes), format_bytes(plan.argument_bytes));
  }

  void restore_or_start() {
    weights_.set(initial_values(step_graph_, model_.initializers(), s_.seed));
    fmt::print("{} parameters; batches of {} x {} characters; {} steps\n",
               format_count(static_cast<double>(model_.count())), s_.batch, s_.model.context, s_.optimizer.steps);
    if (!checkpoint_) return;
    const CheckpointMeta& meta = checkpoint_->meta;
    for (const auto& [name, value] : s_.model.to_strings()) {
      const auto at = meta.config.find(name);
      if (at == meta.config.end() || at->second == value) continue;
      throw UserError(fmt::format("the checkpoint in {} has {}={}, this run {}={}", s_.output.string(), name,
                                  at->second, name, value),
                      "train_resume", "give the same settings, another --output, or --fresh to start anew");
    }
    for (const auto& slot : exe_->program().states) weights_.set(slot.name, checkpoint_->tensors.tensor(slot.name));
    const auto history = [&](const char* steps, const char* losses, std::vector<CurvePoint>& curve) {
      const HostTensor at = checkpoint_->tensors.tensor(steps), loss = checkpoint_->tensors.tensor(losses);
      for (std::int64_t i = 0; i < at.numel(); ++i) curve.push_back({at.get_int(i), loss.get(i)});
    };
    history("history.step", "history.loss", training_);
    history("history.validation_step", "history.validation_loss", validation_);
    step_ = meta.step;
    fmt::print("going on after step {} of the checkpoint in {}\n", step_, checkpoint_->folder.string());
  }

  /// Whether it reached the last step.
  bool loop() {
    const text::BatchSampler sampler(corpus_->train, s_.batch, s_.model.context, s_.seed);
    const std::int64_t last = s_.optimizer.steps;
    Progress progress(step_, last, static_cast<double>(s_.batch * s_.model.context));
    while (step_ < last && !interrupted) {
      const ir::Tensors out = exe_->run({{"tokens", sampler.random(step_)}});
      ++step_;
      const double loss = out.at("loss").get(0);
      training_.push_back({step_, loss});
      if (!std::isfinite(loss)) {
        save();
        throw UserError(fmt::format("the loss of step {} is {}", step_, loss), "train_diverged",
                        "try a smaller --lr, or --clip");
      }
      progress.step(step_, loss, out.at("learning_rate").get(0));
      if (const auto skipped = out.find("skipped"); skipped != out.end() && skipped->second.get(0) != 0)
        progress.line(fmt::format("step {:>5}  skipped: a gradient is not finite at the loss scale {:.0f}", step_,
                                  out.at("loss_scale").get(0)));
      if (step_ % s_.evaluate_every == 0 && step_ < last) {
        validation_.push_back({step_, validation_loss(8)});
        progress.line(fmt::format("step {:>5}  validation loss {:.3f}", step_, validation_.back().loss));
      }
      if (step_ % s_.save_every == 0) save();
    }
    progress.finish();
    save();
    return step_ >= last;
  }

  /// The mean over at most `batches` batches of the validation text.
  double validation_loss(std::int64_t batches) {
    const text::BatchSampler sampler(corpus_->validation, s_.batch, s_.model.context, s_.seed);
    batches = std::min(batches, std::max<std::int64_t>(1, sampler.windows() / s_.batch));
    double sum = 0;
    for (std::int64_t i = 0; i < batches; ++i)
      sum += evaluate_->run({{"tokens", sampler.sequential(i)}}).at("loss").get(0);
    return sum / static_cast<double>(batches);
  }

  void save() {
    const auto curve = [](const std::vector<CurvePoint>& points, HostTensor& steps, HostTensor& losses) {
      const auto n = static_cast<std::int64_t>(points.size());
      steps = HostTensor(i64, {n});
      losses = HostTensor(f64, {n});
      for (std::int64_t i = 0; i < n; ++i) {
        steps.set_int(i, points[static_cast<std::size_t>(i)].step);
        losses.set(i, points[static_cast<std::size_t>(i)].loss);
      }
    };
    HostTensor steps, losses, validation_steps, validation_losses;
    curve(training_, steps, losses);
    curve(validation_, validation_steps, validation_losses);
    std::vector<TensorView> tensors = {view_of("history.step", steps), view_of("history.loss", losses),
                                       view_of("history.validation_step", validation_steps),
                                       view_of("history.validation_loss", validation_losses)};
    for (const std::string& name : weights_.names()) tensors.push_back(view_of(name, weights_.get(name)));
    CheckpointMeta meta{
        .step = step_, .data_position = step_, .ir_hash = {}, .config = s_.model.to_strings(), .values = {}};
    meta.config["characters"] = corpus_->vocabulary.characters();
    meta.config["text"] = text_hash_;
    meta.values["seed"] = fmt::format("{}", s_.seed);
    store_.save(meta, tensors);
    write_text(
        (s_.output / "loss.svg").string(),
        loss_curve_svg(fmt::format("{} on {} characters", s_.model.model, raw_.size()), training_, validation_));
  }

  void report_final() {
    const double loss = validation_loss(1 << 20);
    if (validation_.empty() || validation_.back().step != step_) {
      validation_.push_back({step_, loss});
      save();
    }
    fmt::print("validation loss {:.3f} nats a character over the whole validation text\n", loss);
    fmt::print("checkpoint and loss.svg in {}\n", s_.output.string());
  }

  void sample() {
    if (s_.sample <= 0) return;
    std::vector<std::int64_t> tokens = corpus_->vocabulary.encode(s_.prompt.empty() ? "\n" : s_.prompt);
    Sampler sampler(s_.sampling, s_.seed);
    fmt::print("\n--- a sample, temperature {:.1f} ---\n{}", s_.sampling.temperature,
               s_.prompt == "\n" ? "" : s_.prompt);
    for (std::int64_t i = 0; i < s_.sample && !interrupted; ++i) {
      const auto seen = std::min<std::int64_t>(static_cast<std::int64_t>(tokens.size()), s_.model.context);
      HostTensor input(i64, {1, seen});
      for (std::int64_t j = 0; j < seen; ++j)
        input.set_int(j, tokens[tokens.size() - static_cast<std::size_t>(seen - j)]);
      const HostTensor logits = generate_->run({{"tokens", input}}).at("logits");
      tokens.push_back(sampler.next(logits_row(logits, seen - 1)));
      fmt::print("{}", corpus_->vocabulary.decode({tokens.back()}));
      std::fflush(stdout);
    }
    fmt::print("\n");
  }

  TrainSettings s_;
  DiskCache cache_;
  CheckpointStore store_;
  std::string raw_, text_hash_;
  std::optional<Checkpoint> checkpoint_;
  std::optional<text::Corpus> corpus_;
  nn::Module model_;
  ir::Graph step_graph_;
  Parameters weights_;
  std::optional<Executable> exe_, evaluate_, generate_;
  std::vector<CurvePoint> training_, validation_;
  std::int64_t step_ = 0;
};

}  // namespace

void train(const TrainSettings& settings) { Trainer(settings).run(); }

}  // namespace lathe::tools
