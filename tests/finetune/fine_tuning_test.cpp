#include "models/finetune/fine_tuning.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "models/generation/generator.h"
#include "runtime/files/checkpoint.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using test::error_label;
using test::ScratchFolder;
using test::slurp;

namespace {

/// Prepares the tiny Qwen3 of the cases and training examples.
FineTuneOptions prepare(const ScratchFolder& scratch) {
  if (!std::filesystem::exists(scratch / "model"))
    std::filesystem::copy(test::test_data("hf/models/qwen3/model"), scratch / "model");
  std::string lines;
  for (int i = 0; i < 24; ++i)
    lines += R"({"prompt": "and )" + std::to_string(i % 4) + R"(", "completion": " the for"})" + "\n";
  test::spit(scratch / "data.jsonl", lines);
  return {.model = scratch / "model",
          .data = scratch / "data.jsonl",
          .output = scratch / "tuned",
          .steps = 6,
          .batch = 4,
          .context = 60,
          .optimizer = {.decay = RateDecay::constant, .lr = 1e-2, .warmup = 1},
          .save_every = 2,
          .compile = {.threads = 1, .cache = test::shared_kernels()}};
}

const pretrained::LoraConfig rank_4{.r = 4, .alpha = 8, .targets = std::vector<std::string>{"q_proj", "v_proj"}};

/// Records the events of a run by name, and some of their values.
struct Recorder : TrainingObserver {
  void note(const std::string&) override { events += "note "; }
  void examples_read(const ExampleSummary& training, const ExampleSummary* validation) override {
    events += "read ";
    examples = training.examples + (validation ? validation->examples : 0);
  }
  void model_built(const ir::Graph& loss, const DefaultSplitSummary* splits) override {
    events += "built ";
    CHECK(loss.outputs.size() == 1);
    CHECK(splits == nullptr);
  }
  void started(const TrainingStart& start) override {
    events += "started ";
    completed = start.completed;
    is_adapter = start.is_adapter;
    trains_all = start.parameters == start.trained;
    changed = start.changed_settings;
    CHECK(start.checkpoint.has_value() == (completed > 0));
  }
  void step_done(const StepReport& step) override {
    events += "step ";
    losses.push_back(step.loss);
  }
  void validated(const Validation& validation) override {
    events += validation.is_last ? "last-validated " : "validated ";
  }
  void sampled(const GeneratedSample& sample) override {
    events += "sampled ";
    last_sample = sample.text;
  }
  void saved(const std::filesystem::path&, const LossHistory& history) override {
    events += "saved ";
    CHECK(history.training.back().step >= 1);
  }

  std::string events;
  std::vector<double> losses;
  std::vector<std::string> changed;
  std::int64_t examples = 0, completed = -1;
  bool is_adapter = false, trains_all = false;
  std::string last_sample;
};

/// Generates the sample text of `options` with the model or adapter in a folder.
std::string sample_of(const std::filesystem::path& folder, const FineTuneOptions& options) {
  Generator generator = Generator::load(folder, {.threads = 1, .cache = test::shared_kernels()});
  GenerationOptions how = generator.defaults();
  how.max_new_tokens = 5;
  how.seed = options.seed;
  std::string text;
  for (const std::string& piece : generator.generate("the for", how)) text += piece;
  return text;
}

}  // namespace

TEST_CASE("finetune: an adapter trains in C++, reports its events, and the written adapter reloads") {
  const ScratchFolder scratch;
  Recorder recorder;
  FineTuneOptions options = prepare(scratch);
  options.valid_share = 0.2;
  options.lora = rank_4;
  options.evaluate_every = 3;
  options.samples = {.prompts = {"the for"}, .every = 4, .tokens = 5};
  options.observer = &recorder;
  const TrainingResult result = FineTuning(options).run();
  CHECK_FALSE(result.stopped);
  CHECK(result.steps == 6);
  REQUIRE(result.history.training.size() == 6);
  CHECK(result.last_loss() == recorder.losses.back());
  CHECK(recorder.losses.back() < recorder.losses.front());
  REQUIRE(result.validation.has_value());
  CHECK(result.validation->step == 6);
  REQUIRE(result.best_validation().has_value());
  CHECK(result.best_validation()->loss <= result.validation->loss);
  CHECK(recorder.events ==
        "read built started step step saved step validated step sampled saved step step sampled saved "
        "last-validated ");
  CHECK(recorder.examples == 24);
  CHECK(recorder.completed == 0);
  CHECK(recorder.is_adapter);
  CHECK_FALSE(recorder.trains_all);
  CHECK(sample_of(options.output, options) == recorder.last_sample);
  int lines = 0;
  std::istringstream metrics(slurp(options.output / "training/metrics.jsonl"));
  for (std::string line; std::getline(metrics, line); ++lines)
    CHECK(nlohmann::json::parse(line).at("step").get<int>() >= 1);
  CHECK(lines == 6 + 2 + 2);  // steps, validations, samples
}

TEST_CASE("finetune: a run that is stopped resumes to the same bits, in the same object or in another one") {
  const ScratchFolder scratch;
  FineTuneOptions options = prepare(scratch);
  options.accumulate = 2;
  options.pack = true;
  REQUIRE(FineTuning(options).run().steps == 6);
  const std::string whole = slurp(options.output / "model.safetensors");
  Recorder first, second;
  options.output = scratch / "parts";
  options.observer = &first;
  options.stop = [&] { return first.losses.size() == 3; };
  const TrainingResult stopped = FineTuning(options).run();
  CHECK(stopped.stopped);
  CHECK(stopped.steps == 3);
  CHECK_FALSE(stopped.validation.has_value());
  CHECK(first.trains_all);
  CHECK_FALSE(first.is_adapter);
  CHECK_FALSE(std::filesystem::exists(options.output / "model.safetensors"));
  options.observer = &second;
  bool stops = true;
  options.stop = [&] { return second.losses.size() == 1 && std::exchange(stops, false); };
  FineTuning tuning(options);
  CHECK(tuning.run().steps == 4);
  CHECK(second.completed == 3);
  CHECK(second.changed.empty());
  const TrainingResult result = tuning.run();
  CHECK_FALSE(result.stopped);
  CHECK(result.steps == 6);
  CHECK(result.history.training.size() == 6);
  CHECK(slurp(options.output / "model.safetensors") == whole);
}

TEST_CASE("finetune: a schedule-free adapter is written as averages, and resumes to the same bits") {
  const ScratchFolder scratch;
  FineTuneOptions options = prepare(scratch);
  options.lora = rank_4;
  options.valid_share = 0.2;
  options.samples = {.prompts = {"the for"}, .every = 6, .tokens = 5};
  options.optimizer = {.kind = OptimizerKind::schedule_free, .lr = 1e-1, .warmup = 1};
  Recorder recorder;
  options.observer = &recorder;
  const TrainingResult whole = FineTuning(options).run();
  Recorder first;
  options.observer = &first;
  options.output = scratch / "parts";
  options.stop = [&] { return first.losses.size() == 3; };
  CHECK(FineTuning(options).run().stopped);
  options.stop = {};
  CHECK(FineTuning(options).run().history == whole.history);
  const std::string file = "adapter_model.safetensors";
  CHECK(slurp(scratch / "parts" / file) == slurp(scratch / "tuned" / file));

  const Checkpoint last = *CheckpointStore(scratch / "tuned/training/checkpoints").load_newest();
  std::vector<double> averages, written;
  for (const std::string& name : last.tensors.names()) {
    if (!name.starts_with("optimizer.z.")) continue;
    const HostTensor z = last.tensors.tensor(name), y = last.tensors.tensor(name.substr(12));
    for (std::int64_t i = 0; i < z.numel(); ++i) averages.push_back(y.get(i) + (z.get(i) - y.get(i)) * (1 - 1 / 0.9));
  }
  const auto adapter = SafetensorsFile::open(scratch / "tuned" / file);
  for (const std::string& name : adapter.names()) {
    const HostTensor x = adapter.tensor(name);
    for (std::int64_t i = 0; i < x.numel(); ++i) written.push_back(x.get(i));
  }
  std::ranges::sort(averages);
  std::ranges::sort(written);
  REQUIRE(averages.size() == written.size());
  for (std::size_t i = 0; i < written.size(); ++i) CHECK(written[i] == Approx(averages[i]).margin(1e-6));
  // The sample of the last step is that of the written adapter.
  CHECK(sample_of(scratch / "tuned", options) == recorder.last_sample);
}

TEST_CASE("finetune: settings that changed are reported, and others are refused") {
  const ScratchFolder scratch;
  FineTuneOptions options = prepare(scratch);
  options.lora = rank_4;
  options.steps = 2;
  REQUIRE(FineTuning(options).run().steps == 2);
  Recorder recorder;
  options.observer = &recorder;
  options.steps = 3;
  options.optimizer.clip = 0.5;
  CHECK(FineTuning(options).run().steps == 3);
  CHECK(recorder.changed ==
        std::vector<std::string>{"resuming with clip=0.5, previously 1", "resuming with steps=3, previously 2"});
  options.lora->r = 2;
  CHECK(error_label([&] { FineTuning(options).run(); }) == "train_resume");
  options.fresh = true;
  CHECK(FineTuning(options).run().history.training.size() == 3);
}

TEST_CASE("finetune: options without an effect or out of range are refused") {
  const ScratchFolder scratch;
  const FineTuneOptions options = prepare(scratch);
  const auto label = [&](const auto& change, bool runs = false) {
    FineTuneOptions changed = options;
    change(changed);
    return error_label([&] {
      FineTuning tuning(changed);
      if (runs) tuning.run();
    });
  };
  using Options = FineTuneOptions;
  CHECK(label([](Options& o) { o.text = "text.txt"; }) == "train_options");
  CHECK(label([](Options& o) { o.data = ""; }) == "train_options");
  CHECK(label([](Options& o) { o.batch = 0; }) == "train_options");
  CHECK(label([](Options& o) { o.context = 1; }) == "train_options");
  CHECK(label([](Options& o) { o.steps = -1; }) == "train_options");
  CHECK(label([](Options& o) { o.epochs = 0; }) == "train_options");
  CHECK(label([](Options& o) { o.optimizer.lr = -1; }) == "train_options");
  CHECK(label([](Options& o) { o.output = ""; }) == "train_options");
  CHECK(label([](Options& o) { o.samples.every = 0; }) == "train_options");
  CHECK(label([](Options& o) { o.compile.mode = Mode::evaluation; }) == "train_options");
  CHECK(label([](Options& o) { o.compile.parameters = Parameters(); }) == "train_options");
  CHECK(label([](Options& o) { o.compile.reserve = {{"T", 8}}; }) == "train_options");
  CHECK(label([](Options& o) { o.compile.sizes = {{"T", 8}}; }) == "train_options");
  CHECK(label([](Options& o) { o.compile.share_states = true; }) == "train_options");
  CHECK(label([](Options& o) { o.valid_share = 1; }) == "finetune_valid");
  CHECK(label([](Options& o) {
          o.valid_share = 0.5;
          o.valid = "valid.jsonl";
        }) == "finetune_valid");
  CHECK(label([](Options& o) { o.context = 1 << 20; }, true) == "finetune_context");
  CHECK(label([](Options& o) { o.output = o.model; }, true) == "output_folder");
  CHECK(label([](Options& o) { o.optimizer.warmup = 6; }, true) == "train_warmup");
  CHECK(label([](Options& o) { o.compile.split = {{"B", "data"}}; }, true) == "mesh_processes");
  CHECK(label([](Options& o) { o.model = ""; }, true) == "model_folder");
}
