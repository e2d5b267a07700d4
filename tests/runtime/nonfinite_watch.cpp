#include "runtime/nonfinite_watch.h"

#include <catch2/catch.hpp>
#include <functional>

#include "frontend/dsl.h"
#include "ir/support/error.h"
#include "runtime/train/trainer.h"
#include "tests/runtime/files/files_scratch.h"

/// CompileOptions::find_nan: the op that makes the first NaN of a run, from the states before it.
using namespace lathe;
using Catch::Contains;
using Catch::StartsWith;
using test::ScratchFolder;

namespace {

/// loss = mean(log(w * x)), which becomes NaN as soon as an element of w * x is negative.
struct LogModel {
  Graph g{"logs"};
  Dim n{"n"};
  Tensor x = g.input("x", f32, {n, 3});
  Tensor w = g.parameter("w", f32, {3});
  Tensor loss = log(w * x).mean({0, 1});
  LogModel() { g.output("loss", loss); }
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

HostTensor rows(double last) { return HostTensor::from({2, 3}, {1, 2, 3, 4, 5, last}); }

}  // namespace

TEST_CASE("find_nan: a run names the op, and its states are those before the run") {
  const LogModel model;
  const ir::Graph step = training_step(model.g, model.loss, SGD{.lr = 0.125}, {});
  const HostTensor w = HostTensor::from({3}, {1, 1, 1});
  Executable executable = compile(step, {.find_nan = true});
  executable.parameters().set(initial_values(step, model.g.initializers(), 1));
  executable.parameters().set("w", w);
  CHECK(executable.run({{"x", rows(6)}}).at("loss").get(0) > 0);
  const HostTensor after = executable.parameters().get("w");
  CHECK(!after.same_bits(w));
  const std::string text = message_of([&] { executable.run({{"x", rows(-6)}}); });
  CHECK_THAT(text, StartsWith("not finite: ") && Contains("loss (1 NaN)"));
  CHECK_THAT(text, Contains("[not_finite]") && Contains("nonfinite_watch.cpp:26:\n    ") && Contains(" = log ") &&
                       Contains("result: 1 NaN of 6 elements"));
  CHECK(executable.parameters().get("w").same_bits(after));
  CHECK(executable.run({{"x", rows(6)}}).at("loss").get(0) > 0);
}

TEST_CASE("find_nan: gradients that are not finite are found in the step that makes them") {
  Graph g{"roots"};
  const Tensor w = g.parameter("w", f32, {2});
  const Tensor loss = sqrt(w).sum({0});
  g.output("loss", loss);
  const ir::Graph step = training_step(g, loss, SGD{.lr = 0.5}, {});
  Executable executable = compile(step, {.find_nan = true});
  executable.parameters().set(initial_values(step, g.initializers(), 1));
  executable.parameters().set("w", HostTensor::from({2}, {0, 4}));
  const std::string text = message_of([&] { executable.run(Tensors()); });
  CHECK_THAT(text, StartsWith("not finite: ") && Contains("w (1 infinite)") &&
                       Contains("at gradient of nonfinite_watch.cpp:"));
  CHECK(executable.parameters().get("w").get(1) == 4);
}

TEST_CASE("find_nan: outputs in the caller's memory, with strides") {
  Graph g{"logs"};
  const Tensor x = g.input("x", f32, {2, 2});
  g.output("y", log(x));
  Executable executable = compile(g.finish(), {.find_nan = true});
  const HostTensor given = HostTensor::from({2, 2}, {1, 2, 3, -4});
  HostTensor wide(f32, {2, 4});
  const OutputRefs outputs{{"y", TensorRef(f32, {2, 2}, wide.data(), {4, 1})}};
  CHECK_THAT(message_of([&] { executable.run(InputRefs{{"x", given}}, outputs); }),
             Contains("result: 1 NaN of 4 elements") && Contains("at [1, 1]"));
}

TEST_CASE("find_nan: a trainer reports the op, from the states before the step") {
  const LogModel model;
  const ir::Graph step = training_step(model.g, model.loss, SGD{.lr = 0.125}, {});
  const auto batch = [](std::int64_t at) { return Tensors{{"x", rows(at == 5 ? -6 : 6)}}; };
  const ScratchFolder scratch;
  const auto fail = [&](bool find_nan) {
    Tensors start = initial_values(step, model.g.initializers(), 1);
    start.set("w", HostTensor::from({3}, {1, 1, 1}));
    Trainer trainer(step, std::move(start),
                    {.folder = RunFolder(scratch / "run"), .save_every = 2, .compile = {.find_nan = find_nan}});
    return message_of([&] { trainer.run(batch, 9); });
  };
  // Without find_nan, the steps since the checkpoint are repeated with it.
  const std::string plain = fail(false);
  CHECK_THAT(plain, StartsWith("the loss of step 6 is ") && Contains("[train_diverged]") &&
                        Contains("resumes after step 4") && Contains("\n  step 6 is not finite: ") &&
                        Contains(" = log ") && Contains("result: 1 NaN of 6 elements") && !Contains("--find-nan"));
  const std::string found = fail(true);
  CHECK_THAT(found, StartsWith("step 6 is not finite: ") && Contains("[train_diverged]") && Contains(" = log ") &&
                        Contains("resumes after step 4") && !Contains("resume with find_nan"));
}

TEST_CASE("find_nan: the error of a run without a checkpoint does not advise to resume") {
  const LogModel model;
  const ir::Graph step = training_step(model.g, model.loss, SGD{.lr = 0.125}, {});
  Tensors start = initial_values(step, model.g.initializers(), 1);
  start.set("w", HostTensor::from({3}, {1, 1, 1}));
  Trainer trainer(step, std::move(start));
  CHECK_THAT(message_of([&] { trainer.run([](std::int64_t) { return Tensors{{"x", rows(-6)}}; }, 9); }),
             Contains("run again with find_nan (--find-nan)") && !Contains("resume"));
}

TEST_CASE("find_nan: a run that diverges before its first checkpoint repeats its steps from the start") {
  const LogModel model;
  const ir::Graph step = training_step(model.g, model.loss, AdamW{.lr = 0.125}, {});
  const auto batch = [](std::int64_t at) { return Tensors{{"x", rows(at == 3 ? -6 : 6)}}; };
  const StartValue start = [&](const std::string& name) {
    return name == "w" ? HostTensor::from({3}, {1, 1, 1}) : initial_value(step, name, {}, 1);
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> replays;
  const auto fail = [&](bool can_restart, std::function<bool()> stop = {}) {
    TrainerOptions options{.stop = std::move(stop), .can_restart = can_restart};
    options.before_replay = [&](std::int64_t first, std::int64_t last) { replays.emplace_back(first, last); };
    Trainer trainer(step, start, std::move(options));
    return message_of([&] { trainer.run(batch, 9); });
  };
  CHECK_THAT(fail(true), StartsWith("the loss of step 4 is ") && Contains("\n  step 4 is not finite: ") &&
                             Contains(" = log ") && !Contains("--find-nan"));
  CHECK(replays == std::vector{std::pair<std::int64_t, std::int64_t>(1, 4)});
  CHECK_THAT(fail(false), StartsWith("the loss of step 4 is ") && Contains("run again with find_nan (--find-nan)"));
  // A run that is interrupted while it repeats its steps only says that it diverged.
  CHECK_THAT(fail(true, [&] { return replays.size() > 1; }), Contains("run again with find_nan (--find-nan)"));
  CHECK(replays.size() == 2);
}
