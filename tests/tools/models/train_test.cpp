#include <csignal>
#include <set>
#include <thread>

#include "runtime/files/checkpoint.h"
#include "runtime/files/file_lock.h"
#include "tests/support/programs/process.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

/// Returns a training command with its own text and a model whose steps take almost no time.
std::string small_training(const Scratch& scratch, const std::string& sizes = "--context 8 --batch 2",
                           const std::string& sample = "--sample 0") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abc ab" + std::string(static_cast<std::size_t>(i % 5), 'd') + "\n";
  scratch.write("text.txt", text);
  return "train --text text.txt -o run --layers 1 --d-model 8 --heads 1 --threads 1 " + sample + " " + sizes + " ";
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  if (fs::exists(folder))
    for (const auto& item : fs::directory_iterator(folder)) names.insert(item.path().filename().string());
  return names;
}

CheckpointStore store_of(const Scratch& scratch) { return CheckpointStore(scratch.path("run/checkpoints")); }

CheckpointMeta meta_of(const std::map<std::string, std::string>& config) {
  return {.step = 1, .data_position = 1, .config = config};
}

/// Returns a shell command in a folder, which writes to the files `out` and `err` there.
test::Command shell_in(const Scratch& scratch, const std::string& command, const std::string& err) {
  return {.words = {"/bin/sh", "-c", command},
          .folder = scratch.path(""),
          .environment = {{"LATHE_CACHE_DIR", scratch.cache()}},
          .in = "/dev/null",
          .out = scratch.path("out"),
          .err = scratch.path(err),
          .limits = {},
          .user = {}};
}

/// Starts a training run without an end, and waits for its first step. `before` precedes it in the shell.
class Training {
 public:
  Training(const Scratch& scratch, const std::string& arguments, const std::string& before = {})
      : scratch_(with_empty_output(scratch)),
        process_(shell_in(scratch, before + "exec '" LATHE_BINARY "' " + arguments, "err")) {
    using namespace std::chrono_literals;
    for (int i = 0; i < 6000 && scratch.read("out").find("\nstep ") == std::string::npos; ++i) {
      REQUIRE_FALSE(process_.wait_for(10ms).has_value());
    }
  }
  test::Process& process() { return process_; }
  std::string out() const { return scratch_.read("out"); }

 private:
  /// Clears the output of earlier runs.
  static const Scratch& with_empty_output(const Scratch& scratch) {
    scratch.write("out", "");
    return scratch;
  }

  const Scratch& scratch_;
  test::Process process_;
};

}  // namespace

TEST_CASE("a diverged run keeps its checkpoints, and the next run resumes from the last good one", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch);
  REQUIRE(run_lathe(scratch, train + "--steps 6 --save-every 2").status == 0);
  const auto before = names_in(scratch.path("run/checkpoints"));
  const std::string good = store_of(scratch).load_newest()->folder.string();
  SECTION("detected in the loss") {
    const auto ran = run_lathe(scratch, train + "--steps 40 --save-every 39 --lr 1e30 --warmup 1");
    INFO(ran.out << ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, StartsWith("lathe: the loss of step ") && Contains("[train_diverged]"));
    CHECK_THAT(ran.err, Contains("a smaller --lr") && Contains("it resumes after step 6, the last good checkpoint"));
  }
  SECTION("detected in a state before the loss") {
    const auto ran = run_lathe(scratch, train + "--steps 40 --save-every 1 --lr 1e39 --warmup 1");
    INFO(ran.out << ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, StartsWith("lathe: the state after step 7 is not finite: '") && Contains("[train_diverged]"));
  }
  CHECK(names_in(scratch.path("run/checkpoints")) == before);
  CHECK(store_of(scratch).load_newest()->folder == good);
  const CheckpointStore apart(scratch.path("run/diverged"), 1, CheckpointStore::States::any);
  REQUIRE(apart.list().size() == 1);
  CHECK(load_checkpoint(apart.list()[0]).meta.step > 6);
  const auto again = run_lathe(scratch, train + "--steps 8");
  CHECK(again.status == 0);
  CHECK_THAT(again.out, Contains("resuming after step 6 "));
  CHECK(store_of(scratch).load_newest()->meta.step == 8);
}

TEST_CASE("a run that diverges before its first checkpoint reports that there is none", "[tools][train]") {
  const Scratch scratch;
  const auto ran = run_lathe(scratch, small_training(scratch) + "--steps 40 --lr 1e30 --warmup 1");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("[train_diverged]") && Contains("this run has no checkpoint to resume from"));
  CHECK(store_of(scratch).list().empty());
}

TEST_CASE("one process at a time trains in an output folder, and the error names it", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch);
  REQUIRE(run_lathe(scratch, train + "--steps 2").status == 0);
  const auto before = names_in(scratch.path("run/checkpoints"));
  {
    const auto held = FileLock::take(scratch.path("run/.lock"));
    REQUIRE(held.has_value());
    for (const char* fresh : {"", "--fresh "}) {
      const auto second = run_lathe(scratch, train + fresh + "--steps 4");
      CHECK(second.status == 1);
      CHECK_THAT(second.err, Contains("process " + std::to_string(::getpid()) + " is training in run") &&
                                 Contains("[train_locked]"));
    }
  }
  CHECK(names_in(scratch.path("run/checkpoints")) == before);
  CHECK(run_lathe(scratch, train + "--steps 4").status == 0);
}

TEST_CASE("a signal ends training with a checkpoint, and a status that identifies the signal", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch) + "--steps 1000000000 --save-every 1000000000 ";
  std::int64_t step = 0;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    INFO(signal);
    Training training(scratch, train);
    training.process().send(signal);
    const auto ended = training.process().wait_for(std::chrono::seconds(60));
    REQUIRE(ended.has_value());
    CHECK(*ended == test::Ending{.status = 128 + signal});
    const auto saved = store_of(scratch).load_newest();
    REQUIRE(saved.has_value());
    CHECK(saved->meta.step > step);
    step = saved->meta.step;
    CHECK_THAT(training.out(), Contains("Stopped after step " + std::to_string(step) + ". Checkpoint in run"));
  }
  SECTION("a signal that is ignored at process start does not end training") {
    Training training(scratch, train, "trap '' HUP; ");
    training.process().send(SIGHUP);
    CHECK_FALSE(training.process().wait_for(std::chrono::seconds(1)).has_value());
    training.process().send(SIGTERM);
    CHECK(training.process().wait() == test::Ending{.status = 128 + SIGTERM});
  }
}

TEST_CASE("when its reader closes the pipe, training saves, and reports so on standard error", "[tools][train]") {
  // Standard output with block buffering and with line buffering.
  for (const std::string buffering : {"", "stdbuf -oL "}) {
    CAPTURE(buffering);
    const Scratch scratch;
    const std::string train = small_training(scratch);
    REQUIRE(run_lathe(scratch, train + "--steps 2").status == 0);
    const std::string lost = "--steps 1000000000 --save-every 1000000000 --evaluate-every 50 2>err";
    const std::string command = "( " + buffering + "'" LATHE_BINARY "' " + train + lost + "; echo $? >status )";
    const test::Ending ending = test::run(shell_in(scratch, command + " | sed '/^step /q'", "err-of-shell"));
    CHECK(ending == test::Ending{});
    CHECK(scratch.read("status") == std::to_string(128 + SIGPIPE) + "\n");
    const auto saved = store_of(scratch).load_newest();
    REQUIRE(saved.has_value());
    CHECK(saved->meta.step > 2);
    CHECK_THAT(scratch.read("err"), Contains("Stopped after step " + std::to_string(saved->meta.step)));
  }
}

TEST_CASE("the last validation is bounded, after a single save", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch);
  const auto bounded = run_lathe(scratch, train + "--steps 2 --validation-batches 3");
  INFO(bounded.out << bounded.err);
  REQUIRE(bounded.status == 0);
  CHECK_THAT(bounded.out, Contains("over 3 of ") && Contains(" batches of the validation text\n"));
  CHECK_THAT(bounded.out, !Contains("graph @"));
  CHECK(names_in(scratch.path("run/checkpoints")) == std::set<std::string>{".lock", "00000001-step-2"});
  CHECK(fs::exists(scratch.path("run/model/model.safetensors")));
  for (const std::string whole : {"--validation-batches 0", ""}) {
    const auto ran = run_lathe(scratch, train + "--steps 2 --fresh --print-graph " + whole);
    CHECK(ran.status == 0);
    CHECK_THAT(ran.out, Contains("over the whole validation text\n") && Contains("graph @llama("));
  }
}

TEST_CASE("settings that differ from the checkpoint are reported, or rejected", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch);
  REQUIRE(run_lathe(scratch, train + "--steps 2").status == 0);
  const auto same = run_lathe(scratch, train + "--steps 2");
  CHECK(same.status == 0);
  CHECK_THAT(same.out, !Contains("resuming with"));
  const auto other =
      run_lathe(scratch, small_training(scratch, "--context 8 --batch 3") +
                             "--steps 4 --seed 5 --lr 0.01 --warmup 2 --clip 0.5 --weight-decay 0 --chunk-rows off");
  CHECK(other.status == 0);
  for (const char* line : {"steps=4, previously 2", "seed=5, previously 1", "batch=3, previously 2",
                           "lr=0.01, previously 0.001", "warmup=2, previously 0", "clip=0.5, previously 1",
                           "weight_decay=0, previously 0.1", "chunk_rows=off, previously auto"})
    CHECK_THAT(other.out, Contains(std::string("resuming with ") + line + "\n"));
  const auto refused = run_lathe(scratch, small_training(scratch, "--context 4 --batch 2") + "--steps 6 --model gpt");
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err,
             Contains("has context=8, model=llama, this run context=4, model=gpt") && Contains("[train_resume]"));
  CHECK(store_of(scratch).load_newest()->meta.step == 4);
}

TEST_CASE("leftovers of a killed run are removed at the next start", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch);
  REQUIRE(run_lathe(scratch, train + "--steps 2").status == 0);
  fs::create_directories(scratch.path("run/checkpoints/.work-00000009-step-9"));
  scratch.write("run/checkpoints/.work-00000009-step-9/.tensors.safetensors.17-0.lathe-tmp", "half");
  scratch.write("run/.loss.svg.17-0.lathe-tmp", "half");
  scratch.write("run/.tokenizer.json.17-0.lathe-tmp", "half");
  scratch.write("run/model/.config.json.17-0.lathe-tmp", "half");
  scratch.write("run/notes.txt", "mine");
  REQUIRE(run_lathe(scratch, train + "--steps 2").status == 0);
  CHECK(names_in(scratch.path("run")) ==
        std::set<std::string>{".lock", "checkpoints", "loss.svg", "model", "notes.txt"});
  CHECK_FALSE(fs::exists(scratch.path("run/checkpoints/.work-00000009-step-9")));
  CHECK_FALSE(fs::exists(scratch.path("run/model/.config.json.17-0.lathe-tmp")));
}

TEST_CASE("a checkpoint of another program is an error by name", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch);
  const HostTensor weights(f32, {3});
  const std::vector tensors{view_of("w", weights)};
  SECTION("without a vocabulary") {
    const auto folder = store_of(scratch).save(meta_of({}), tensors);
    const auto ran = run_lathe(scratch, train + "--steps 2");
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err,
               Contains(folder.filename().string()) && Contains("no vocabulary") && Contains("[train_resume]"));
  }
  SECTION("with other tensors") {
    store_of(scratch).save(meta_of({{"characters", "abcd \n"}}), tensors);
    const auto ran = run_lathe(scratch, train + "--steps 2");
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains("[safetensors_missing]"));
  }
  SECTION("with an inconsistent history") {
    REQUIRE(run_lathe(scratch, train + "--steps 2").status == 0);
    const auto saved = store_of(scratch).load_newest();
    std::map<std::string, HostTensor> all;
    for (const std::string& name : saved->tensors.names()) all.emplace(name, saved->tensors.tensor(name));
    all.at("history.loss") = HostTensor(f64, {7});
    std::vector<TensorView> states, records;
    for (const auto& [name, tensor] : all)
      (name.starts_with("history.") ? records : states).push_back(view_of(name, tensor));
    store_of(scratch).save(saved->meta, states, records);
    const auto ran = run_lathe(scratch, train + "--steps 3");
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err,
               Contains("history.step and history.loss are i64[2] and f64[7]") && Contains("[checkpoint_invalid]"));
  }
  SECTION("with the largest checkpoint number") {
    fs::create_directories(scratch.path("run/checkpoints/18446744073709551615-step-1"));
    const auto ran = run_lathe(scratch, train + "--steps 2");
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains("[checkpoint_number]"));
  }
}

TEST_CASE("train has one source of text: a file or a folder", "[tools][train]") {
  const Scratch scratch;
  const std::string command = small_training(scratch) + "--steps 1 ";
  const auto both = run_lathe(scratch, command + "--sources .");
  CHECK(both.status != 0);
  CHECK_THAT(both.err, Contains("--text excludes --sources"));
  CHECK(names_in(scratch.path("run")).empty());
  CHECK(run_lathe(scratch, command).status == 0);
}

TEST_CASE("an endless text is rejected", "[tools][train]") {
  const Scratch scratch;
  for (const char* command : {"train -o run --text /dev/zero", "dump - < /dev/zero"}) {
    const auto ran = run_lathe(scratch, command);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains("has more than") && Contains(" bytes"));
  }
  small_training(scratch);
  CHECK(run_lathe(scratch,
                  "train -o run --text /dev/stdin --layers 1 --d-model 8 --heads 1 --context 8 --steps 1 "
                  "--sample 0 < text.txt")
            .status == 0);
}

TEST_CASE("training on tokens resumes with its tokenizer, and its model generates texts", "[tools]") {
  const Scratch scratch;
  const auto with = [&](const std::string& options, const std::string& sample = "--sample 0") {
    return run_lathe(scratch, small_training(scratch, "--context 4 --batch 2", sample) + "--save-every 4 " + options);
  };
  const std::string tokens = "--tokenizer bpe:270 --steps ";
  const auto first = with(tokens + "4");
  CAPTURE(first.out, first.err);
  REQUIRE(first.status == 0);
  CHECK_THAT(first.out, Contains(" tokens, ") && Contains("nats per token") && Contains("run/model"));
  CHECK(names_in(scratch.path("run/model")) == std::set<std::string>{".lathe-save.json", "config.json",
                                                                     "generation_config.json", "model.safetensors",
                                                                     "tokenizer.json", "tokenizer_config.json"});
  CHECK(scratch.read("run/model/tokenizer.json") == scratch.read("run/tokenizer.json"));
  // The sample equals the output of the saved model.
  const auto sampled = with(tokens + "8", "--sample 6 --temperature 0 --prompt 'abc '");
  CAPTURE(sampled.out, sampled.err);
  REQUIRE(sampled.status == 0);
  CHECK_THAT(sampled.out, Contains("resuming after step 4"));
  const auto generated = run_lathe(scratch, "generate run/model 'abc ' -n 6 --greedy -q --threads 1");
  CAPTURE(generated.err);
  REQUIRE(generated.status == 0);
  CHECK_THAT(sampled.out, Contains("---\nabc " + generated.out));

  const auto other = with("--tokenizer bpe:280 --steps 12");
  CHECK(other.status == 1);
  CHECK_THAT(other.err, Contains("[train_resume]") && Contains("bpe:280"));
  const std::string json = scratch.read("run/tokenizer.json");
  scratch.write("run/tokenizer.json", "{}");
  const auto changed = with(tokens + "12");
  CHECK(changed.status == 1);
  scratch.write("run/tokenizer.json", json + "\n");
  const auto touched = with(tokens + "12");
  CHECK(touched.status == 1);
  CHECK_THAT(touched.err, Contains("[train_resume]"));
  scratch.write("run/tokenizer.json", json);
  CHECK(with(tokens + "9").status == 0);
  // The same tokenizer, read from its file.
  CHECK(with("--steps 1 --fresh --tokenizer run/model/tokenizer.json").status == 0);
}

TEST_CASE("training on characters writes a model that generates texts, and rejects other tokenizers", "[tools]") {
  const Scratch scratch;
  for (const char* model : {"llama", "gpt"}) {
    CAPTURE(model);
    const auto trained = run_lathe(
        scratch, small_training(scratch, "--context 8 --batch 2", "--sample 5 --temperature 0 --prompt abc") +
                     "--steps 3 --fresh --model " + model);
    CAPTURE(trained.out, trained.err);
    REQUIRE(trained.status == 0);
    const auto generated = run_lathe(scratch, "generate run/model abc -n 5 --greedy -q --threads 1");
    CAPTURE(generated.err);
    CHECK(generated.status == 0);
    CHECK_THAT(trained.out, Contains("---\nabc" + generated.out));
  }
  const auto refused = [&](const std::string& tokenizer, const std::string& says) {
    const auto ran = run_lathe(scratch, small_training(scratch) + "--steps 1 --fresh --tokenizer " + tokenizer);
    CAPTURE(tokenizer, ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, StartsWith("lathe: ") && Contains(says));
  };
  refused("bpe:many", "[tokenizer_size]");
  refused("bpe:10", "[tokenizer_size]");
  refused("nowhere.json", "nowhere.json");
}

TEST_CASE("train has every optimizer and schedule, and refuses settings that they do not have", "[tools][train]") {
  const Scratch scratch;
  const std::string train = small_training(scratch) + "--steps 4 ";
  const auto ran = run_lathe(scratch, train + "--optimizer schedule-free --beta1 0.8 --beta2 0.95 --warmup 2");
  INFO(ran.out << ran.err);
  CHECK(ran.status == 0);
  const auto& config = store_of(scratch).load_newest()->meta.config;
  CHECK(config.at("optimizer") == "schedule-free");
  CHECK(config.at("beta1") == "0.8");
  CHECK(run_lathe(scratch, train + "--fresh --schedule step --warmup 1 --decay-every 2 --decay-factor 0.3").status ==
        0);
  const auto& values = store_of(scratch).load_newest()->meta.values;
  CHECK(values.at("schedule") == "step");
  CHECK(values.at("decay_every") == "2");
  CHECK(run_lathe(scratch, train + "--fresh --schedule one-cycle --warmup 2").status == 0);
  CHECK(run_lathe(scratch, train + "--fresh --schedule inverse-sqrt --optimizer muon --momentum 0.9").status == 0);
  const auto refused = [&](const std::string& options) {
    return run_lathe(scratch, train + "--fresh " + options).err;
  };
  CHECK_THAT(refused("--optimizer lion --momentum 0.5"), Contains("momentum is given, which the optimizer lion"));
  CHECK_THAT(refused("--optimizer sgd --beta2 0.5"),
             Contains("beta2 is given, which the optimizer sgd does not have"));
  CHECK_THAT(refused("--decay-every 3"), Contains("decay_every is given, which the schedule cosine does not have"));
  CHECK_THAT(refused("--optimizer schedule-free --schedule linear"),
             Contains("the optimizer schedule-free has no schedule linear"));
  CHECK_THAT(refused("--beta1 1"), Contains("--beta1 is 1; it must be a number from 0"));
}
