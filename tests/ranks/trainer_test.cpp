#include <catch2/catch.hpp>
#include <limits>

#include "ir/ops/primitives/primitives.h"
#include "runtime/ranks/thread_communicator.h"
#include "runtime/train/trainer.h"
#include "tests/ranks/support.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/graphs/divisible_steps.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"

/// The loop of a training run on several ranks, in threads of this process.
namespace lathe::test {

namespace {

ir::Graph forward_graph() {
  Graph g{"gpt"};
  const models::Gpt model(g, divisible_gpt(1, 0.1, f64));
  g.output("loss", model.loss(g.input("tokens", i64, {Dim("B"), Dim("T") + 1})));
  return g.finish();
}

ir::Graph step_graph(bool is_schedule_free = false) {
  const Optimizer optimizer =
      is_schedule_free ? Optimizer(ScheduleFreeAdamW{.lr = 1e-2}) : Optimizer(AdamW{.lr = 1e-3});
  return gpt_step(divisible_gpt(1, 0.1, f64), optimizer, {.clip_norm = 0.5});
}

/// The results of a run.
struct Ended {
  LossHistory history;
  Tensors wholes;
  bool is_done = false;
};

struct RunOfTest {
  std::filesystem::path folder;
  std::int64_t last = 8;
  Division division = {.mesh = "", .splits = ""};  ///< without a mesh: one process
  std::function<bool(int rank, std::int64_t step)> stop = [](int, std::int64_t) { return false; };
  Tensors start = {};  ///< initial values of some parameters
  bool find_nan = false;
  bool is_schedule_free = false;  ///< the optimizer, and its averages are evaluated
};

Ended run_rank(const RunOfTest& run, const std::shared_ptr<Ranks>& ranks) {
  const ir::Graph step = step_graph(run.is_schedule_free);
  const ir::Graph evaluation = run.is_schedule_free
                                   ? schedule_free_evaluation(forward_graph(), schedule_free_parameters(step), 0.9)
                                   : forward_graph();
  const int rank = ranks ? ranks->rank() : 0;
  CompileOptions compile{.threads = 1, .cache = shared_kernels(), .find_nan = run.find_nan, .ranks = ranks};
  if (ranks) compile.split = shard::parse_splits(run.division.splits);
  if (ranks) compile.parts = run.division.parts;
  Tensors start = step_arguments(step, 1, 1, 0.3);
  start.erase("tokens");
  for (const auto& [name, value] : run.start) start.insert_or_assign(name, value);
  std::int64_t done = 0;
  Trainer trainer(
      step, start,
      {.evaluation = Evaluation{.graph = evaluation,
                                .batches = [](std::int64_t i) { return Tensors{{"tokens", tokens_of(100 + i)}}; },
                                .count = 2,
                                .every = 3},
       .folder = rank == 0 ? RunFolder(run.folder) : RunFolder(),
       .save_every = 4,
       .compile = compile,
       .after_step = [&](const StepReport& report) { done = report.step; },
       .stop = [&] { return run.stop(rank, done); }});
  Ended ended;
  ended.is_done = trainer.run([](std::int64_t i) { return Tensors{{"tokens", tokens_of(i)}}; }, run.last);
  ended.history = trainer.history();
  const Parameters wholes = trainer.whole_parameters();
  for (const ir::ValueId id : step.arguments())
    if (step[id].op == &ir::ops::parameter && rank == 0)
      ended.wholes.emplace(step[id].name, wholes.get(step[id].name));
  return ended;
}

/// Returns the results of rank 0; every rank must have the same history.
Ended run(const RunOfTest& run) {
  if (run.division.mesh.empty()) return run_rank(run, nullptr);
  const shard::Mesh mesh = shard::Mesh::parse(run.division.mesh);
  std::vector<Ended> ended(static_cast<std::size_t>(mesh.size()));
  run_ranks(static_cast<int>(mesh.size()), [&](int rank, const MakeCommunicator& make) {
    const auto ranks = std::make_shared<Ranks>(make, mesh, RanksOptions{.timeout = 60});
    ending_all(*ranks, [&] { ended[static_cast<std::size_t>(rank)] = run_rank(run, ranks); });
  });
  for (const Ended& other : ended) CHECK((other.history == ended[0].history && other.is_done == ended[0].is_done));
  return ended[0];
}

/// Returns the largest difference of losses and saved tensors, relative to values of about 1.
double difference(const Ended& a, const Ended& b) {
  const auto losses = [](const Ended& ended) {
    std::vector<double> found;
    for (const auto* curve : {&ended.history.training, &ended.history.evaluation})
      for (const LossPoint& point : *curve) found.push_back(point.loss);
    return found;
  };
  return difference(Trained{losses(a), a.wholes}, Trained{losses(b), b.wholes});
}

const Division by_both{"data=2,model=2", "B:data,h:model,d_ff:model,vocab:model", {.states = "data"}};
const Division by_parameters{"data=2", "B:data", {.parameters = "data"}};

}  // namespace

TEST_CASE("ranks: a Trainer on every mesh trains, evaluates and saves like one process") {
  const ScratchFolder scratch;
  const Ended one = run({.folder = scratch / "one"});
  REQUIRE(one.history.evaluation.size() == 2);
  for (const Division& division : {by_both, by_parameters}) {
    CAPTURE(division.mesh);
    const std::filesystem::path folder = scratch / division.mesh;
    CHECK(difference(run({.folder = folder, .division = division}), one) < 1e-10);
    // One process resumes from the mesh's checkpoint.
    CHECK(difference(run({.folder = folder, .last = 8}), one) < 1e-10);
  }
}

TEST_CASE("ranks: a Trainer resumes from the checkpoint of any mesh, on the same mesh to the same bits") {
  const ScratchFolder scratch;
  const Ended one = run({.folder = scratch / "one"}), many = run({.folder = scratch / "many", .division = by_both});
  run({.folder = scratch / "a", .last = 4, .division = by_both});
  const Ended again = run({.folder = scratch / "a", .last = 8, .division = by_both});
  CHECK(again.history == many.history);
  CHECK(same_bits(Trained{{}, again.wholes}, Trained{{}, many.wholes}));
  run({.folder = scratch / "b", .last = 4, .division = by_parameters});
  CHECK(difference(run({.folder = scratch / "b", .division = by_both}), one) < 1e-10);
  run({.folder = scratch / "c", .last = 4});
  CHECK(difference(run({.folder = scratch / "c", .division = by_parameters}), one) < 1e-10);
}

TEST_CASE("ranks: initialization value by value matches initialization of all values") {
  const ScratchFolder scratch;
  const Ended expected = run({.folder = scratch / "all", .last = 2, .division = by_parameters});
  const ir::Graph step = step_graph();
  const Tensors start = step_arguments(step, 1, 1, 0.3);
  run_ranks(2, [&](int, const MakeCommunicator& make) {
    const auto ranks = std::make_shared<Ranks>(make, shard::Mesh::parse("data=2"), RanksOptions{.timeout = 60});
    ending_all(*ranks, [&] {
      std::vector<std::string> asked;
      Trainer trainer(step,
                      [&](const std::string& name) {
                        asked.push_back(name);
                        return start.at(name);
                      },
                      {.compile = {.threads = 1,
                                   .cache = shared_kernels(),
                                   .ranks = ranks,
                                   .split = {{"B", "data"}},
                                   .parts = {.parameters = "data"}}});
      if (asked.size() + 1 != start.size()) throw InternalError("not every value but the tokens was asked for, once");
      trainer.run([](std::int64_t i) { return Tensors{{"tokens", tokens_of(i)}}; }, 2);
      if (trainer.history().training != expected.history.training) throw InternalError("other losses");
      for (const auto& [name, value] : trainer.wholes(std::vector<std::string>{"wte"}))
        if (!value.same_bits(expected.wholes.at(name))) throw InternalError("another table");
    });
  });
}

TEST_CASE("ranks: any rank can stop the Trainer of all ranks, with a checkpoint") {
  const ScratchFolder scratch;
  const Ended ended =
      run({.folder = scratch / "run", .division = by_parameters, .stop = [](int rank, std::int64_t step) {
             return rank == 1 && step >= 2;
           }});
  CHECK_FALSE(ended.is_done);
  CHECK(ended.history.training.size() == 2);
  CHECK(RunFolder(scratch / "run").checkpoint()->meta.step == 2);
}

TEST_CASE("ranks: a diverged run on several processes is saved separately as on one process") {
  const ScratchFolder scratch;
  HostTensor table(f64, {32, 16});
  table.set(5, std::numeric_limits<double>::infinity());
  std::string text;
  CHECK(error_label([&] { run({.folder = scratch / "run", .division = by_both, .start = {{"wte", table}}}); },
                    &text) == "train_diverged");
  INFO(text);
  CHECK(text.find("the current state: ") != std::string::npos);  // printed by any rank
  const RunFolder folder(scratch / "run");
  CHECK_FALSE(folder.checkpoint().has_value());
  const Checkpoint kept = load_checkpoint(folder.diverged().list().at(0));
  CHECK(kept.meta.step == 1);
  CHECK(kept.tensors.info("wte").shape == std::vector<std::int64_t>{32, 16});
}

TEST_CASE("ranks: with find_nan, a diverged run on several processes names the op and resumes from before the step") {
  const ScratchFolder scratch;
  HostTensor table(f64, {32, 16});
  table.set(5, std::numeric_limits<double>::quiet_NaN());
  std::string text;
  CHECK(
      error_label(
          [&] { run({.folder = scratch / "run", .division = by_both, .start = {{"wte", table}}, .find_nan = true}); },
          &text) == "train_diverged");
  INFO(text);
  // The table is split over the vocabulary, so only some ranks have the NaN.
  CHECK(text.find("step 1 is not finite on rank 0 of 4: ") != std::string::npos);
  CHECK(text.find("the parameter %wte holds them before the run: 1 NaN of 256 elements") != std::string::npos);
  CHECK(text.find("the current state: ") != std::string::npos);
  CHECK(load_checkpoint(RunFolder(scratch / "run").diverged().list().at(0)).meta.step == 0);
}

TEST_CASE("ranks: schedule-free averages are evaluated on every mesh as on one process") {
  const ScratchFolder scratch;
  const auto with = [&](const char* folder, const Division& division) {
    return run({.folder = scratch / folder, .division = division, .is_schedule_free = true});
  };
  const Ended one = with("one", {.mesh = "", .splits = ""});
  REQUIRE(one.history.evaluation.size() == 2);
  CHECK(one.history.evaluation != run({.folder = scratch / "other"}).history.evaluation);
  for (const Division& division : {by_both, by_parameters})
    CHECK(difference(with(division.mesh.c_str(), division), one) < 1e-10);
}

}  // namespace lathe::test
