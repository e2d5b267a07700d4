#include <algorithm>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/files/safetensors/safetensors.h"
#include "tests/mpi/runs.h"
#include "tests/support/texts/test_data.h"

/// `lathe finetune` on several processes, started as users do.
namespace lathe::test {

namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// Trains the tiny Qwen3 of the cases on examples of different lengths, into the folder `run`.
Words tuning(const Scratch& scratch, const std::string& run, const Words& more = {}) {
  if (!fs::exists(scratch.path("model")))
    fs::copy(test_data("hf/models/qwen3/model"), scratch.path("model"), fs::copy_options::recursive);
  std::string lines;
  for (int i = 0; i < 24; ++i) {
    lines += R"({"prompt": "and )" + std::to_string(i % 4) + R"(", "completion": ")";
    for (int k = 0; k <= i % 5; ++k) lines += " the for";
    lines += "\"}\n";
  }
  scratch.write("data.jsonl", lines);
  return Words{"finetune", "model", "--data",     "data.jsonl", "--threads",    "1", "--context", "32",
               "--batch",  "4",     "--lr",       "1e-2",       "--warmup",     "1", "--valid",   "0.2",
               "-o",       run,     "--schedule", "constant",   "--eval-every", "2"} +
         more;
}

const Words all_weights{"--accumulate", "2"}, adapter{"--lora", "r=4,dropout=0.1", "--pack"};

// Dims that are split by default, and those that are named.
const MeshOfTest tuned_by_data{2, {"--mesh", "data=2"}};
const MeshOfTest tuned_by_model{2, {"--mesh", "model=2"}};
const MeshOfTest tuned_by_both{
    4, {"--mesh", "data=2,model=2", "--split", "B:data,h:model,d_ff:model", "--states", "data"}};
const MeshOfTest tuned_by_parameters{2, {"--mesh", "data=2", "--parameters", "data"}};

std::vector<nlohmann::json> metrics(const Scratch& scratch, const std::string& run) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(scratch.read(run + "/training/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

std::vector<std::string> samples(const Scratch& scratch, const std::string& run) {
  std::vector<std::string> found;
  for (const nlohmann::json& line : metrics(scratch, run))
    if (line.contains("sample")) found.push_back(line["sample"]);
  return found;
}

/// Checks that a written file is close to `expected` and has its names, dtypes and shapes.
void check_written(const Scratch& scratch, const std::string& file, const std::string& expected) {
  const auto a = SafetensorsFile::open(scratch.path(file)), b = SafetensorsFile::open(scratch.path(expected));
  REQUIRE(a.names() == b.names());
  for (const std::string& name : a.names()) {
    const HostTensor x = a.tensor(name), y = b.tensor(name);
    CAPTURE(name);
    REQUIRE(x.dtype() == y.dtype());
    REQUIRE(x.shape() == y.shape());
    double most = 0;
    for (std::int64_t i = 0; i < x.numel(); ++i) most = std::max(most, std::abs(x.get(i) - y.get(i)));
    CHECK(most < 2e-3);  // where a gradient is nearly zero, Adam turns a rounding error into a step of the learning
                         // rate
  }
}

}  // namespace

TEST_CASE("mpi: lathe finetune of all weights on several processes matches the losses of one") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const Words more = all_weights + Words{"--steps",        "5", "--sample-prompt", "the for",
                                         "--sample-every", "3", "--sample-tokens", "5"};
  run_to_end(scratch, 0, tuning(scratch, "one", more));
  int number = 0;
  for (const MeshOfTest& mesh : {tuned_by_data, tuned_by_model, tuned_by_both}) {
    const std::string run = "many-" + std::to_string(number++);
    const RanMany ran = run_many(scratch, mesh.processes, tuning(scratch, run, more) + mesh.words);
    INFO(ran.out << ran.err);
    REQUIRE(ran.ending == Ending{});
    check_losses(scratch, run + "/training", "one/training");
    CHECK(samples(scratch, run) == samples(scratch, "one"));
    CHECK(metrics(scratch, run).size() == metrics(scratch, "one").size());
    CHECK(fs::exists(scratch.path(run + "/training/loss.svg")));
    check_written(scratch, run + "/model.safetensors", "one/model.safetensors");
    // Only one process prints.
    CHECK(ran.out.find("model in " + run) == ran.out.rfind("model in " + run));
    CHECK_THAT(ran.out, Contains("model in " + run));
  }
  CHECK(samples(scratch, "one").size() == 2);
}

TEST_CASE("mpi: lathe finetune of an adapter resumes from the checkpoint of any mesh") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const Words first = adapter + Words{"--steps", "2"}, second = adapter + Words{"--steps", "5"};
  run_to_end(scratch, 0, tuning(scratch, "one", first));
  fs::copy(scratch.path("one"), scratch.path("from-one"), fs::copy_options::recursive);
  run_to_end(scratch, 0, tuning(scratch, "one", second));
  run_to_end(scratch, tuned_by_both.processes, tuning(scratch, "from-one", second) + tuned_by_both.words);
  check_losses(scratch, "from-one/training", "one/training");
  run_to_end(scratch, tuned_by_parameters.processes, tuning(scratch, "many", first) + tuned_by_parameters.words);
  const RanMany ran =
      run_many(scratch, tuned_by_model.processes, tuning(scratch, "many", second) + tuned_by_model.words);
  INFO(ran.out << ran.err);
  REQUIRE(ran.ending == Ending{});
  CHECK_THAT(ran.out, Contains("resuming with processes=--mesh model=2 --split h:model,d_ff:model, previously "
                               "--mesh data=2 --split B:data --parameters data"));
  check_losses(scratch, "many/training", "one/training");
  check_written(scratch, "many/adapter_model.safetensors", "one/adapter_model.safetensors");
  CHECK_FALSE(fs::exists(scratch.path("many/model.safetensors")));
}

TEST_CASE("mpi: lathe finetune resumes on the same mesh to the same bits, also after a killed rank") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const Words words = Words{"--save-every", "2"} + all_weights + tuned_by_parameters.words;
  {
    Endless run(scratch, tuning(scratch, "run", words) + Words{"--steps", "1000000"}, "run/training");
    REQUIRE(::kill(run.processes().back(), SIGKILL) == 0);
    run.check_ends(10);
  }
  const Words rest = words + Words{"--steps", std::to_string(newest(scratch, "run/training").meta.step / 2 + 3)};
  fs::copy(scratch.path("run"), scratch.path("again"), fs::copy_options::recursive);
  const RanMany ran = run_many(scratch, 2, tuning(scratch, "run", rest));
  INFO(ran.out << ran.err);
  CHECK(ran.ending == Ending{});
  CHECK_THAT(ran.out, Contains("resuming after step "));
  run_to_end(scratch, 2, tuning(scratch, "again", rest));
  check_same_bits(scratch, "again/training", "run/training");
  CHECK(scratch.read("again/model.safetensors") == scratch.read("run/model.safetensors"));
}

TEST_CASE("mpi: lathe finetune reports unsupported meshes") {
  if (!has_mpi()) return;
  const Scratch scratch;
  const RanMany alone = run_many(scratch, 0, tuning(scratch, "run") + tuned_by_data.words);
  CHECK(alone.ending == Ending{.status = 1});
  CHECK_THAT(alone.err, Contains("mpirun -n 2 lathe finetune --mesh data=2") && Contains("[mesh_processes]"));

  const RanMany name = run_many(scratch, 2, tuning(scratch, "run") + Words{"--mesh", "tp=2", "--split", "width:tp"});
  CHECK(name.ending != Ending{});
  CHECK_THAT(name.err, Contains("has no dim named width") &&
                           Contains("its dims are B, T, d, d_ff, groups, h, half, hidden, kv, vocab") &&
                           Contains("[shard_name]"));

  // The second process has another seed.
  const Words both = tuning(scratch, "run") + tuned_by_data.words +
                     Words{"--seed", "1", ":", "-n", "1", LATHE_BINARY} + tuning(scratch, "run") +
                     tuned_by_data.words + Words{"--seed", "2"};
  const RanMany seeds = run_many(scratch, 1, both);
  CHECK(seeds.ending != Ending{});
  CHECK_THAT(seeds.err, Contains("ranks differ in") && Contains("[ranks_differ]"));
}

}  // namespace lathe::test
