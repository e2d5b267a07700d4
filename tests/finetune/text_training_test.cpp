#include "models/finetune/new_model/text_training.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numbers>

#include "models/finetune/new_model/text_codec.h"
#include "models/finetune/new_model/text_model.h"
#include "models/generation/generator.h"
#include "models/text/corpus.h"
#include "runtime/files/checkpoint.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"

using namespace lathe;
using test::error_label;
using test::ScratchFolder;
using test::slurp;

namespace {

/// Returns options with their own text and a model whose steps take almost no time.
TextTrainingOptions prepare(const ScratchFolder& scratch) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abc ab" + std::string(static_cast<std::size_t>(i % 5), 'd') + "\n";
  test::spit(scratch / "text.txt", text);
  return {.text = scratch / "text.txt",
          .model = {.layers = 1, .d_model = 8, .heads = 1, .context = 8},
          .output = scratch / "run",
          .steps = 12,
          .batch = 2,
          .optimizer = {.lr = 1e-2, .warmup = 1},
          .evaluate_every = 5,
          .save_every = 4,
          .compile = {.threads = 1, .cache = test::shared_kernels()}};
}

struct Losses : TrainingObserver {
  void text_read(const TextSummary& summary) override { text = summary; }
  void step_done(const StepReport& step) override { losses.push_back(step.loss); }
  void validated(const Validation&) override { ++validations; }

  TextSummary text;
  std::vector<double> losses;
  int validations = 0;
};

}  // namespace

TEST_CASE("text training: a model trains in C++, and its directory continues a text like its sample") {
  const ScratchFolder scratch;
  for (const char* kind : {"llama", "gpt"}) {
    CAPTURE(kind);
    Losses observer;
    TextTrainingOptions options = prepare(scratch);
    options.model.kind = kind;
    options.model.dropout = std::string(kind) == "gpt" ? 0.1 : 0;
    options.output = scratch / kind;
    options.observer = &observer;
    TextTraining training(options);
    CHECK(error_label([&] { training.sample(); }) == "train_options");
    const TrainingResult result = training.run();
    CHECK_FALSE(result.stopped);
    CHECK(result.steps == 12);
    CHECK(result.last_loss() == observer.losses.back());
    CHECK(observer.losses.back() < observer.losses.front());
    CHECK(observer.validations == 3);
    REQUIRE(result.validation.has_value());
    CHECK(result.validation->batches == result.validation->all_batches);
    CHECK(observer.text.unit == "characters");
    CHECK(observer.text.distinct == 6);
    std::string pieces;
    const std::string sample = training.sample({.length = 5, .prompt = "abc", .sampling = {.temperature = 0}},
                                               [&](std::string_view piece) { pieces += piece; });
    CHECK(pieces == sample);
    CHECK(sample.size() == 5);
    Generator generator = Generator::load(options.output / "model", {.threads = 1, .cache = test::shared_kernels()});
    std::string text;
    for (const std::string& piece : generator.generate("abc", {.max_new_tokens = 5})) text += piece;
    CHECK(text == sample);
  }
}

TEST_CASE("text training: a run that is stopped resumes to the same bits") {
  const ScratchFolder scratch;
  TextTrainingOptions options = prepare(scratch);
  options.tokenizer = "bpe:270";
  options.model.context = 4;
  CHECK(TextTraining(options).run().steps == 12);
  Losses observer;
  options.output = scratch / "parts";
  options.observer = &observer;
  options.stop = [&] { return observer.losses.size() == 5; };
  CHECK(TextTraining(options).run().stopped);
  CHECK_FALSE(std::filesystem::exists(options.output / "model/model.safetensors"));
  options.stop = {};
  const TrainingResult result = TextTraining(options).run();
  CHECK(result.history.training.size() == 12);
  CHECK(observer.losses.size() == 12);
  CHECK(slurp(options.output / "model/model.safetensors") == slurp(scratch / "run/model/model.safetensors"));
  CHECK(slurp(options.output / "model/tokenizer.json") == slurp(scratch / "run/model/tokenizer.json"));
}

TEST_CASE("text training: options without an effect or out of range are refused") {
  const ScratchFolder scratch;
  const TextTrainingOptions options = prepare(scratch);
  const auto label = [&](const auto& change, bool runs = false) {
    TextTrainingOptions changed = options;
    change(changed);
    return error_label([&] {
      TextTraining training(changed);
      if (runs) training.run();
    });
  };
  using Options = TextTrainingOptions;
  CHECK(label([](Options& o) { o.sources = "."; }) == "train_options");
  CHECK(label([](Options& o) { o.text = ""; }) == "train_options");
  CHECK(label([](Options& o) { o.steps = 0; }) == "train_options");
  CHECK(label([](Options& o) { o.save_every = 0; }) == "train_options");
  CHECK(label([](Options& o) { o.optimizer.weight_decay = -1; }) == "train_options");
  CHECK(label([](Options& o) { o.optimizer.beta1 = 1; }) == "train_options");
  CHECK(label([](Options& o) { o.optimizer.momentum = -0.1; }) == "train_options");
  CHECK(label([](Options& o) { o.optimizer.decay_every = 0; }) == "train_options");
  CHECK(label([](Options& o) { o.compile.sizes = {{"T", 8}}; }) == "train_options");
  CHECK(label([](Options& o) { o.model.kind = "bert"; }, true) == "train_model");
  CHECK(label([](Options& o) { o.model.dropout = 0.1; }, true) == "train_model");
  CHECK(label([](Options& o) { o.model.heads = 3; }, true) == "train_heads");
  CHECK(label([](Options& o) { o.optimizer.warmup = 12; }, true) == "train_warmup");
  CHECK(label([](Options& o) { o.tokenizer = "bpe:x"; }, true) == "tokenizer_size");
  CHECK(label([](Options& o) { o.model.context = 1 << 20; }, true) == "text_short");
}

TEST_CASE("text training: every optimizer and schedule trains, and a run resumes with its own optimizer") {
  const ScratchFolder scratch;
  std::vector<std::vector<double>> all;
  for (const std::string& optimizer : optimizer_names()) {
    CAPTURE(optimizer);
    Losses observer;
    TextTrainingOptions options = prepare(scratch);
    options.optimizer.kind = optimizer_named(optimizer);
    options.output = scratch / optimizer;
    options.observer = &observer;
    TextTraining(options).run();
    REQUIRE(observer.losses.size() == 12);
    CHECK(observer.losses.back() < observer.losses.front());
    // Each optimizer takes a path of its own, but 8-bit states are for matrices larger than these.
    const bool is_small = optimizer == "adamw-8bit";
    if (is_small) CHECK(observer.losses == all[0]);
    for (const std::vector<double>& other : all) CHECK((is_small || other != observer.losses));
    all.push_back(observer.losses);
  }
  std::vector<double> last;
  for (const std::string& decay : rate_decay_names()) {
    CAPTURE(decay);
    Losses observer;
    TextTrainingOptions options = prepare(scratch);
    options.optimizer.warmup = 2;
    options.optimizer.decay = rate_decay_named(decay);
    options.output = scratch / decay;
    options.observer = &observer;
    TextTraining(options).run();
    for (const double other : last) CHECK(other != observer.losses.back());
    last.push_back(observer.losses.back());
  }
  TextTrainingOptions other = prepare(scratch);
  other.output = scratch / "lion";
  other.steps = 20;
  CHECK(error_label([&] { TextTraining(other).run(); }) == "train_resume");
  other.optimizer.kind = OptimizerKind::lion;
  CHECK(TextTraining(other).run().steps == 20);
  CHECK(error_label([] { optimizer_named("adamx"); }) == "train_options");
  CHECK(error_label([] { rate_decay_named("cosin"); }) == "train_options");
}

TEST_CASE("text training: settings that the optimizer or the schedule does not have are refused by name") {
  const ScratchFolder scratch;
  const TextTrainingOptions options = prepare(scratch);
  const auto refused = [&](const OptimizerSettings& settings) {
    TextTrainingOptions changed = options;
    changed.optimizer = settings;
    std::string text;
    CHECK(error_label([&] { TextTraining{changed}; }, &text) == "train_options");
    return text;
  };
  using Kind = OptimizerKind;
  using Catch::Contains;
  CHECK_THAT(refused({.kind = Kind::sgd, .beta1 = 0.8}), Contains("beta1 is given, which the optimizer sgd"));
  CHECK_THAT(refused({.kind = Kind::adafactor, .beta2 = 0.8}), Contains("beta2 is given, which the optimizer adaf"));
  for (const Kind kind :
       {Kind::adamw, Kind::adam, Kind::adamw_8bit, Kind::lion, Kind::adafactor, Kind::soap, Kind::schedule_free})
    CHECK_THAT(refused({.kind = kind, .momentum = 0.8}),
               Contains("momentum is given, which the optimizer " + std::string(name(kind)) + " does not have"));
  for (const std::string& decay : rate_decay_names()) {
    const RateDecay kind = rate_decay_named(decay);
    if (kind == RateDecay::step) continue;
    CHECK_THAT(refused({.decay = kind, .decay_every = 3}),
               Contains("decay_every is given, which the schedule " + decay));
    CHECK_THAT(refused({.decay = kind, .decay_factor = 0.5}), Contains("decay_factor is given"));
    if (kind != RateDecay::constant)
      CHECK_THAT(refused({.kind = Kind::schedule_free, .decay = kind}),
                 Contains("the optimizer schedule-free has no schedule " + decay));
  }
  CHECK_THAT(refused({.kind = Kind::schedule_free, .beta1 = 0}), Contains("beta1 is 0 for the optimizer schedule-f"));
}

TEST_CASE("text training: the rates of the schedules") {
  const ScratchFolder scratch;
  const auto rates = [&](const OptimizerSettings& settings) {
    struct Rates : TrainingObserver {
      void step_done(const StepReport& step) override { all.push_back(step.outputs.at("learning_rate").get(0)); }
      std::vector<double> all;
    } observer;
    TextTrainingOptions options = prepare(scratch);
    options.optimizer = settings;
    options.optimizer.lr = 0.5;
    options.observer = &observer;
    options.fresh = true;
    TextTraining(options).run();
    return observer.all;
  };
  const auto check = [&](const OptimizerSettings& settings, const std::function<double(double step)>& expected) {
    const std::vector<double> all = rates(settings);
    REQUIRE(all.size() == 12);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double step = static_cast<double>(i + 1);
      CAPTURE(step);
      CHECK(all[i] == Approx(expected(step)).epsilon(1e-6));
    }
  };
  check({.decay = RateDecay::inverse_sqrt, .warmup = 4},
        [](double t) { return t <= 4 ? 0.5 * t / 4 : 0.5 * std::sqrt(4 / t); });
  check({.decay = RateDecay::step, .warmup = 2, .decay_every = 4, .decay_factor = 0.5},
        [](double t) { return t <= 2 ? 0.5 * t / 2 : 0.5 * std::pow(0.5, std::floor((t - 3) / 4)); });
  const auto cosine = [](double from, double to, double part) {
    return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
  };
  const double first = 0.5 / 25, last = first / 1e4;
  check({.decay = RateDecay::one_cycle, .warmup = 6},
        [&](double t) { return t <= 6 ? cosine(first, 0.5, (t - 1) / 5) : cosine(0.5, last, (t - 6) / 6); });
  check({.kind = OptimizerKind::schedule_free, .warmup = 3}, [](double t) { return t <= 3 ? 0.5 * t / 3 : 0.5; });
  CHECK(error_label([&] { rates({.decay = RateDecay::one_cycle, .warmup = 1}); }) == "train_warmup");
}

TEST_CASE("text training: betas and momentum reach the optimizers that have them") {
  const ScratchFolder scratch;
  const auto losses = [&](const OptimizerSettings& settings) {
    Losses observer;
    TextTrainingOptions options = prepare(scratch);
    options.optimizer = settings;
    options.optimizer.lr = 1e-2;
    options.observer = &observer;
    options.fresh = true;
    TextTraining(options).run();
    return observer.losses;
  };
  for (const std::string& optimizer : optimizer_names()) {
    CAPTURE(optimizer);
    const OptimizerKind kind = optimizer_named(optimizer);
    const bool has_betas = kind != OptimizerKind::sgd && kind != OptimizerKind::adafactor;
    const bool has_momentum = kind == OptimizerKind::sgd || kind == OptimizerKind::muon;
    const std::vector<double> usual = losses({.kind = kind});
    if (has_betas) CHECK(losses({.kind = kind, .beta1 = 0.5}) != usual);
    if (has_betas) CHECK(losses({.kind = kind, .beta2 = 0.6}) != usual);
    if (has_momentum) CHECK(losses({.kind = kind, .momentum = 0.3}) != usual);
  }
}

TEST_CASE("text training: schedule-free evaluates and writes averages, and resumes to the same bits") {
  const ScratchFolder scratch;
  TextTrainingOptions options = prepare(scratch);
  options.model.kind = "gpt";
  options.optimizer = {.kind = OptimizerKind::schedule_free, .lr = 1e-1, .beta1 = 0.8, .warmup = 2};
  options.evaluate_every = 6;
  const TrainingResult whole = TextTraining(options).run();
  Losses observer;
  options.output = scratch / "parts";
  options.observer = &observer;
  options.stop = [&] { return observer.losses.size() == 5; };
  CHECK(TextTraining(options).run().stopped);
  options.stop = {};
  const TrainingResult resumed = TextTraining(options).run();
  CHECK(resumed.history == whole.history);
  CHECK(slurp(scratch / "parts/model/model.safetensors") == slurp(scratch / "run/model/model.safetensors"));

  // The checkpoint has y and z; the written model is x = y + (z - y) * (1 - 1 / beta1).
  const Checkpoint last = *CheckpointStore(scratch / "run/checkpoints").load_newest();
  const auto written = SafetensorsFile::open(scratch / "run/model/model.safetensors");
  const TextModelSettings settings = [&] {
    TextModelSettings made;
    made.TextModelOptions::operator=(options.model);
    made.vocab = written.info("transformer.wte.weight").shape.at(0);
    return made;
  }();
  const TextModel model = build_text_model(
      settings, OptimizerSettings{}.with_defaults({.lr = 1e-3, .weight_decay = 0, .beta2 = 0.99}), 2);
  const auto file_name = [](const std::string& name) {
    return "transformer." + name + (name == "wte" || name == "wpe" ? ".weight" : "");
  };
  CHECK(model.model.parameters().size() == written.names().size());
  double moved = 0;
  for (const nn::Parameter& parameter : model.model.parameters()) {
    const std::string& name = parameter.name();
    CAPTURE(name);
    const HostTensor x = written.tensor(file_name(name)), y = last.tensors.tensor(name),
                     z = last.tensors.tensor("optimizer.z." + name);
    REQUIRE(x.numel() == y.numel());
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      CHECK(x.get(i) == Approx(y.get(i) + (z.get(i) - y.get(i)) * (1 - 1 / 0.8)).margin(1e-6));
      moved = std::max(moved, std::abs(x.get(i) - y.get(i)));
    }
  }
  CHECK(moved > 1e-2);
  // A run of the written weights has the loss of the last validation.
  Executable executable = compile(model.forward, {.mode = Mode::evaluation, .threads = 1});
  for (const nn::Parameter& parameter : model.model.parameters())
    executable.parameters().set(parameter.name(), written.tensor(file_name(parameter.name())));
  const TextCodec codec = TextCodec::make("", slurp(scratch / "text.txt"));
  const text::SplitIds split =
      text::split_ids(codec.encode(slurp(scratch / "text.txt")), options.model.context, codec.unit());
  text::BatchSampler batches(split.validation, options.batch, options.model.context, options.seed);
  Tensors batch{{"tokens", HostTensor()}};
  double sum = 0;
  for (std::int64_t i = 0; i < whole.validation->batches; ++i) {
    batches.sequential(i, batch.at("tokens"));
    sum += executable.run(batch).at("loss").get(0);
  }
  CHECK(sum / static_cast<double>(whole.validation->batches) == Approx(whole.validation->loss).epsilon(1e-5));

  options.output = scratch / "run";
  options.steps = 20;
  options.optimizer.beta1 = 0.9;
  CHECK(error_label([&] { TextTraining(options).run(); }) == "train_resume");
}
