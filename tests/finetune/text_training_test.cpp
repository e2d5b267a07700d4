#include "models/finetune/new_model/text_training.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "models/generation/generator.h"
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
