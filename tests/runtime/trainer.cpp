#include "runtime/train/trainer.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "frontend/dsl.h"
#include "tests/runtime/executable/count_allocations.h"
#include "tests/runtime/files/files_scratch.h"

/// The loop of a training run: batches, evaluations, checkpoints, and resuming after any kind of end.
using namespace lathe;
using Catch::Contains;
using test::failure_of;
using test::ScratchFolder;

namespace {

constexpr std::int64_t rows = 4;

/// A regression with dropout: y [n] from x [n, 3] with two layers.
struct Regression {
  Graph g{"regression"};
  Dim n{"n"};
  Tensor x = g.input("x", f32, {n, 3});
  Tensor y = g.input("y", f32, {n});
  nn::Linear first{g, "first", 3, Dim{"hidden", 8}}, last{g, "last", Dim{"hidden", 8}, 1};
  Tensor loss = mse_loss(last(dropout(tanh(first(x)), g.random_state(), 0.25)).squeeze(-1), y);

  Regression() { g.output("loss", loss); }
  ir::Graph step(const Optimizer& optimizer = AdamW{.lr = 0.02}, const TrainingOptions& options = {}) const {
    return training_step(g, loss, optimizer, options);
  }
  Tensors start(const ir::Graph& step, std::uint64_t seed = 1) const {
    return initial_values(step, g.initializers(), seed);
  }
};

/// Writes the batch of a step to tensors x f32 [rows, 3] and y f32 [rows].
void fill(Tensors& inputs, std::int64_t step) {
  for (std::int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 3; ++j) {
      const double value = static_cast<double>(((step * rows + i) * 3 + j) * 37 % 101) / 100;
      inputs.at("x").set({i, j}, value);
      sum += value * static_cast<double>(j + 1);
    }
    inputs.at("y").set({i}, sum);
  }
}

Tensors batch(std::int64_t step) {
  Tensors inputs{{"x", HostTensor(f32, {rows, 3})}, {"y", HostTensor(f32, {rows})}};
  fill(inputs, step);
  return inputs;
}

void check_same_bits(const Parameters& a, const Parameters& b) {
  REQUIRE(a.names() == b.names());
  for (const std::string& name : a.names()) {
    INFO(name);
    const HostTensor &left = a.get(name), &right = b.get(name);
    REQUIRE(left.shape() == right.shape());
    for (std::int64_t i = 0; i < left.numel(); ++i) CHECK(left.get(i) == right.get(i));
  }
}

/// A step with accumulation, a parameter group, clipping, and a hook with a state: a running average of each
/// gradient.
TrainingOptions with_everything() {
  return {.clip_norm = 0.5,
          .accumulate = 3,
          .groups = {{"biases", names_with({"bias"}), SGD{.lr = 0.05, .momentum = 0.9}}},
          .gradient_hook = [](std::span<NamedGradient> all) {
            for (NamedGradient& each : all) {
              Graph g = each.gradient.graph();
              const Tensor average = g.state("average." + each.name, f32, each.gradient.shape());
              const Tensor next = average * 0.5 + each.gradient * 0.5;
              g.update(average, next);
              each.gradient = next;
            }
          }};
}

}  // namespace

TEST_CASE("a training run resumes to the same bits, in the middle of an accumulation too") {
  const Regression model;
  const ir::Graph step = model.step(AdamW{.lr = 0.02}, with_everything());
  Trainer whole(step, model.start(step));
  CHECK(whole.run(batch, 20));
  const ScratchFolder scratch;
  for (const std::int64_t last : {7, 13, 20}) {
    // Another seed: the checkpoint's values apply, not the initial ones.
    Trainer part(step, model.start(step, static_cast<std::uint64_t>(last)),
                 {.folder = RunFolder(scratch / "run"), .save_every = 5});
    if (last == 7) part.parameters().set(model.start(step));
    CHECK(part.step() == (last == 7 ? 0 : last == 13 ? 7 : 13));
    CHECK(part.run(batch, last));
    if (last < 20) continue;
    check_same_bits(part.parameters(), whole.parameters());
    CHECK(part.history() == whole.history());
    CHECK(part.history().training.size() == 20);
  }
  Trainer done(step, model.start(step), {.folder = RunFolder(scratch / "run")});
  CHECK(done.run([](std::int64_t) -> Tensors { throw std::logic_error("no batch is needed"); }, 20));
  check_same_bits(done.parameters(), whole.parameters());
}

TEST_CASE("compiled accumulated micro-batches match the update of the full batch, with groups and a hook") {
  Graph g{"linear"};
  const Dim n{"n"};
  const Tensor x = g.input("x", f64, {n, 3}), y = g.input("y", f64, {n});
  const Tensor w = g.parameter("w", f64, {3}), b = g.parameter("bias", f64, {});
  const Tensor loss = mse_loss((x * w).sum({-1}) + b, y);
  TrainingOptions options{.clip_norm = 0.3,
                          .groups = {{"biases", names_with({"bias"}), SGD{.lr = 0.5}}},
                          .gradient_hook = [](std::span<NamedGradient> all) {
                            for (NamedGradient& each : all)
                              each.gradient = maximum(minimum(each.gradient, 0.25), -0.25);
                          }};
  const ir::Graph whole_step = training_step(g, loss, AdamW{.lr = 0.1}, options);
  options.accumulate = 4;
  const ir::Graph micro_step = training_step(g, loss, AdamW{.lr = 0.1}, options);
  const auto examples = [](std::int64_t first, std::int64_t count) {
    HostTensor xs(f64, {count, 3}), ys(f64, {count});
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t j = 0; j < 3; ++j)
        xs.set(i * 3 + j, static_cast<double>(((first + i) * 3 + j) * 29 % 31) / 31);
      ys.set(i, static_cast<double>((first + i) * 17 % 13) / 13);
    }
    return Tensors{{"x", xs}, {"y", ys}};
  };
  Trainer whole(whole_step, initial_values(whole_step, g.initializers(), 3));
  Trainer micro(micro_step, initial_values(micro_step, g.initializers(), 3));
  whole.run([&](std::int64_t step) { return examples(step * 8, 8); }, 5);
  micro.run([&](std::int64_t step) { return examples(step * 2, 2); }, 20);
  for (const char* name : {"w", "bias"}) {
    const HostTensor &a = whole.parameters().get(name), &b4 = micro.parameters().get(name);
    for (std::int64_t i = 0; i < a.numel(); ++i) CHECK(a.get(i) == Approx(b4.get(i)).epsilon(1e-12));
  }
  CHECK(micro.executable().run(examples(0, 2)).at("learning_rate.biases").get(0) == 0.5);
}

TEST_CASE("after the first step and the first evaluation, neither allocates") {
  const Regression model;
  TrainingOptions everything = with_everything();
  everything.reported_gradients = names_with({"first"});  // outputs whose number grows with the model
  const ir::Graph step = model.step(AdamW{.lr = 0.02}, everything);
  constexpr std::size_t steps = 9;
  std::vector<std::int64_t> allocations;
  std::vector<const std::byte*> places;
  allocations.reserve(steps), places.reserve(steps);
  Tensors kept = batch(0);
  const auto in_place = [&](std::int64_t at) -> const Tensors& {
    fill(kept, at);
    return kept;
  };
  Trainer trainer(step, model.start(step),
                  {.evaluation = Evaluation{.graph = model.g.finish(), .batches = in_place, .count = 3},
                   .compile = {.threads = 2},
                   .after_step = [&](const StepReport& report) {
                     places.push_back(report.outputs.at("grad.first.weight").data());
                     allocations.push_back(test::allocations());
                   }});
  trainer.run(in_place, steps);
  CHECK(allocations == std::vector(steps, allocations.at(0)));
  CHECK(places == std::vector(steps, places.at(0)));

  const auto first = trainer.evaluate();
  const std::int64_t before = test::allocations();
  const auto second = trainer.evaluate();
  CHECK(test::allocations() == before);
  CHECK(first == second);
}

TEST_CASE("batches by value, in place and by reference with strides train to the same bits") {
  const Regression model;
  const ir::Graph step = model.step();
  const auto trained = [&](const Batches& batches) {
    Trainer trainer(step, model.start(step));
    trainer.run(batches, 5);
    return trainer;
  };
  const Trainer by_value = trained(batch);
  Tensors kept = batch(0);
  const Trainer in_place = trained([&](std::int64_t at) -> const Tensors& {
    fill(kept, at);
    return kept;
  });
  check_same_bits(in_place.parameters(), by_value.parameters());
  // x [rows, 3] is transposed in the caller's memory.
  std::vector<float> x(3 * rows), y(rows);
  const InputRefs refs{{"x", {f32, {rows, 3}, x.data(), {1, rows}}}, {"y", {f32, {rows}, y.data()}}};
  const auto transpose = [&](std::int64_t at) {
    fill(kept, at);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < 3; ++j)
        x[static_cast<std::size_t>(j * rows + i)] = static_cast<float>(kept.at("x").at({i, j}));
      y[static_cast<std::size_t>(i)] = static_cast<float>(kept.at("y").at({i}));
    }
  };
  const Trainer by_reference = trained([&](std::int64_t at) -> const InputRefs& {
    transpose(at);
    return refs;
  });
  check_same_bits(by_reference.parameters(), by_value.parameters());
  const Trainer by_new_references = trained([&](std::int64_t at) {
    transpose(at);
    return InputRefs(refs);
  });
  check_same_bits(by_new_references.parameters(), by_value.parameters());
  // If a batch lacks an input, that is an error; the previous batch's value is not used.
  Trainer trainer(step, model.start(step));
  const auto failure = failure_of([&] {
    trainer.run(
        [](std::int64_t at) {
          Tensors inputs = batch(at);
          if (at == 2) inputs.erase("y");
          return inputs;
        },
        5);
  });
  CHECK(failure.label == "argument_missing");
  CHECK(trainer.step() == 2);
}

TEST_CASE("evaluations run at the given interval, do not change the run, and are recorded") {
  const Regression model;
  const ir::Graph step = model.step();
  const ScratchFolder scratch;
  std::vector<LossPoint> told;
  const auto held_out = [](std::int64_t i) { return batch(1000 + i); };
  const auto options = [&] {
    return TrainerOptions{
        .evaluation = Evaluation{.graph = model.g.finish(), .batches = held_out, .count = 3, .every = 4},
        .folder = RunFolder(scratch / "run"),
        .after_evaluation = [&](const LossPoint& point) { told.push_back(point); }};
  };
  Trainer plain(step, model.start(step));
  plain.run(batch, 12);
  {
    Trainer trainer(step, model.start(step), options());
    trainer.run(batch, 12);
    CHECK(told.size() == 2);  // after steps 4 and 8, but not after the last
    CHECK(trainer.history().evaluation == told);
    check_same_bits(trainer.parameters(), plain.parameters());

    const auto last = trainer.evaluate(5);
    REQUIRE(last.has_value());
    Executable evaluate = compile(model.g.finish(), {.mode = Mode::evaluation, .parameters = trainer.parameters()});
    double sum = 0;
    for (std::int64_t i = 0; i < 5; ++i) sum += evaluate.run(held_out(i)).at("loss").get(0);
    CHECK(*last == sum / 5);
    CHECK(trainer.history().evaluation.back() == LossPoint{12, *last});
    const auto fewer = trainer.evaluate();
    CHECK(trainer.history().evaluation.size() == 3);  // one per step
    CHECK(trainer.history().evaluation.back() == LossPoint{12, *fewer});
    trainer.save();
  }
  const Trainer again(step, model.start(step), options());
  CHECK(again.history().evaluation.size() == 3);
  CHECK(again.history().training == plain.history().training);
}

TEST_CASE("callbacks see each step, and a stop saves the completed steps") {
  const Regression model;
  const ir::Graph step = model.step();
  const ScratchFolder scratch;
  std::vector<std::int64_t> steps;
  std::vector<std::filesystem::path> saved;
  const auto options = [&] {
    return TrainerOptions{.folder = RunFolder(scratch / "run"),
                          .save_every = 4,
                          .after_step =
                              [&](const StepReport& report) {
                                steps.push_back(report.step);
                                CHECK(report.last == 10);
                                CHECK(report.loss == report.outputs.at("loss").get(0));
                                CHECK(report.seconds > 0);
                                CHECK_FALSE(report.skipped);
                              },
                          .after_save = [&](const auto& folder) { saved.push_back(folder); },
                          .stop = [&] { return steps.size() == 6; }};
  };
  {
    Trainer trainer(step, model.start(step), options());
    CHECK_FALSE(trainer.run(batch, 10));
    CHECK(trainer.step() == 6);
  }
  CHECK(saved.size() == 2);
  CHECK(load_checkpoint(saved.back()).meta.step == 6);
  steps.clear();
  {
    Trainer trainer(step, model.start(step), options());
    CHECK(trainer.run(batch, 10));
    CHECK(steps == std::vector<std::int64_t>{7, 8, 9, 10});
    trainer.save();  // nothing has changed
  }
  CHECK(saved.size() == 4);
}

TEST_CASE("a diverged run keeps the last good checkpoint, and saves its state separately") {
  const Regression model;
  const ir::Graph step = model.step();
  const ScratchFolder scratch;
  const auto batches = [](std::int64_t at) {
    Tensors inputs = batch(at);
    if (at == 6) inputs.at("y").set(0, std::numeric_limits<double>::infinity());
    return inputs;
  };
  {
    Trainer trainer(step, model.start(step), {.folder = RunFolder(scratch / "run"), .save_every = 5});
    const auto failure = failure_of([&] { trainer.run(batches, 20); });
    CHECK(failure.label == "train_diverged");
    CHECK_THAT(failure.text, Contains("the loss of step 7 is inf") && Contains("a smaller learning rate") &&
                                 Contains("it resumes after step 5, the last good checkpoint") &&
                                 Contains((scratch / "run/diverged").string()));
  }
  const RunFolder folder(scratch / "run");
  REQUIRE(folder.checkpoint().has_value());
  CHECK(folder.checkpoint()->meta.step == 5);
  CHECK(load_checkpoint(folder.diverged().list().at(0)).meta.step == 7);

  Trainer nowhere(step, model.start(step));
  const auto failure = failure_of([&] { nowhere.run(batches, 20); });
  CHECK(failure.label == "train_diverged");
  CHECK_THAT(failure.text, !Contains("checkpoint") && !Contains("the current state"));
}

TEST_CASE("a run starts from the values in a store, if present") {
  const Regression model;
  const ir::Graph step = model.step();
  Parameters weights;
  weights.set("first.bias", HostTensor::from({8}, {1, 2, 3, 4, 5, 6, 7, 8}, f32));
  Trainer trainer(step, model.start(step), {.compile = {.parameters = weights}});
  CHECK(trainer.parameters() == weights);
  CHECK(weights.get("first.bias").get(7) == 8);
  CHECK(weights.contains("optimizer.m.first.bias"));
  trainer.run(batch, 1);
  CHECK(weights.get("first.bias").get(7) != 8);
}

TEST_CASE("resuming with changed settings is reported, or rejected") {
  const Regression model;
  const ir::Graph step = model.step();
  const ScratchFolder scratch;
  const auto trainer = [&](const RunSettings& settings, RunFolder::Start start = RunFolder::Start::resume) {
    return Trainer(step, model.start(step), {.folder = RunFolder(scratch / "run", start), .settings = settings});
  };
  trainer({.fixed = {{"width", "8"}}, .changeable = {{"lr", "0.02"}}, .kept = {{"words", "a b"}}}).run(batch, 2);
  {
    const Trainer changed = trainer({.fixed = {{"width", "8"}, {"new", "1"}}, .changeable = {{"lr", "0.1"}}});
    CHECK(changed.changed_settings() == std::vector<std::string>{"resuming with lr=0.1, previously 0.02"});
    const auto second = failure_of([&] { trainer({}); });
    CHECK(second.label == "train_locked");
    CHECK_THAT(second.text, Contains("process " + std::to_string(::getpid()) + " is training in"));
  }
  CHECK(failure_of([&] { trainer({.fixed = {{"width", "9"}}}); }).label == "train_resume");
  const Trainer fresh = trainer({.fixed = {{"width", "9"}}}, RunFolder::Start::fresh);
  CHECK(fresh.step() == 0);
  CHECK_FALSE(RunFolder());
  CHECK(failure_of([] { (void)RunFolder().path(); }).label == "train_folder");
}

namespace {

struct Net : nn::Layer<Net> {
  Net(const Module& parent, std::string_view name, const Dim& in)
      : Layer(parent, name, "Net"), up(*this, "up", in, Dim("hidden", 6)), down(*this, "down", Dim("hidden", 6), 1) {}
  Tensor forward(const Tensor& x) const { return down(tanh(up(x))); }
  nn::Linear up, down;
};

/// A GAN: steps of the critic, and a step of the generator after every second one.
struct Gan {
  nn::Module root{"Gan"};
  Net generator{root, "generator", 2}, critic{root, "critic", 1};
  ir::Graph critic_step, generator_step;

  static Tensor judged(const Tensor& logits, double target) {
    return binary_cross_entropy_with_logits(logits, logits * 0 + target);
  }

  Gan() {
    Graph judging{"judging"}, making{"making"};
    const Tensor fake = generator(judging.random_normal({4, 2}, f32)).detach();
    const Tensor on_real = judged(critic(judging.input("x", f32, {rows, 1})), 1), on_fake = judged(critic(fake), 0);
    judging.output("real", on_real);
    judging.output("fake", on_fake);
    critic_step = training_step(judging, on_real + on_fake, Adam{.lr = 1e-2},
                                {.name = "critic", .trainable = nn::trainable(critic)});
    generator_step = training_step(making, judged(critic(generator(making.random_normal({4, 2}, f32))), 1),
                                   Adam{.lr = 1e-2}, {.name = "generator", .trainable = nn::trainable(generator)});
  }
  Tensors start() const {
    Tensors all = root.initial_values(1);
    all.merge(initial_states(critic_step, 1));
    all.merge(initial_states(generator_step, 1));
    return all;
  }
  static Tensors batch(std::int64_t step) {
    HostTensor x(f32, {rows, 1});
    for (std::int64_t i = 0; i < rows; ++i) x.set(i, 3 + static_cast<double>((step * rows + i) % 5) / 5);
    return {{"x", x}};
  }
};

}  // namespace

TEST_CASE("a trainer runs the steps of a GAN in turns, reports their losses, and resumes both to the same bits") {
  const Gan gan;
  std::vector<std::vector<double>> seen;
  const auto options = [&](RunFolder folder) {
    return TrainerOptions{.folder = std::move(folder),
                          .reported_losses = {"real", "fake"},
                          .extra_steps = {{.name = "generator", .graph = gan.generator_step, .every = 2}},
                          .after_step = [&](const StepReport& report) {
                            std::vector<double>& values = seen.emplace_back();
                            std::string names;
                            for (const NamedLoss& each : report.losses) {
                              names += each.name + " ";
                              values.push_back(each.value);
                            }
                            CHECK(names == "loss real fake generator ");
                            CHECK(report.loss == values[0]);
                          }};
  };
  Trainer whole(gan.critic_step, gan.start(), options({}));
  CHECK(whole.run(Gan::batch, 9));
  REQUIRE(seen.size() == 9);
  CHECK(std::isnan(seen[0][3]));  // the generator has not run yet
  CHECK(seen[1][3] > 0);
  CHECK(seen[2][3] == seen[1][3]);
  CHECK(seen[0][0] == Approx(seen[0][1] + seen[0][2]));
  CHECK(whole.parameters().get("optimizer.critic.step").item<int>() == 9);
  CHECK(whole.parameters().get("optimizer.generator.step").item<int>() == 4);

  const ScratchFolder scratch;
  for (const int last : {3, 9}) {
    Trainer part(gan.critic_step, gan.start(), options(RunFolder(scratch / "run")));
    part.run(Gan::batch, last);
    if (last == 9) check_same_bits(part.parameters(), whole.parameters());
  }
}

TEST_CASE("the sizes of a step that no input determines are given by its number") {
  Graph g{"lengths"};
  const Dim n{"n"};
  const Tensor w = g.parameter("w", f32, {});
  const Tensor loss = square(w - g.dim_value(n, f32));
  const ir::Graph step = training_step(g, loss, SGD{.lr = 0.5});
  std::vector<double> losses;
  Trainer trainer(step, Tensors{{"w", HostTensor::scalar(0)}, {"optimizer.step", HostTensor(i64, {})}},
                  {.dims = [](std::int64_t i) { return DimBindings{{"n", i + 1}}; },
                   .after_step = [&](const StepReport& report) { losses.push_back(report.loss); }});
  trainer.run([](std::int64_t) { return Tensors{}; }, 3);
  CHECK(losses == std::vector<double>{1, 1, 1});  // each step goes to the minimum, and the next is 1 away
}

TEST_CASE("unsupported trainer options are errors before anything is compiled") {
  const Regression model;
  const ir::Graph step = model.step();
  const auto error = [&](const ir::Graph& graph, const TrainerOptions& options) {
    return failure_of([&] { Trainer(graph, model.start(step), options); });
  };
  Graph forward{"forward"};
  forward.output("loss", forward.input("x", f32, {3}).sum());
  CHECK_THAT(error(forward.finish(), {}).text, Contains("'forward' updates no state") && Contains("[train_step]"));
  CHECK_THAT(error(step, {.loss = "nll"}).text, Contains("no output 'nll'") && Contains("[train_step]"));
  CHECK_THAT(error(step, {.reported_losses = {"part"}}).text, Contains("no output 'part'"));
  CHECK_THAT(error(step, {.extra_steps = {{.name = "", .graph = step}}}).text, Contains("an extra step has no name"));
  CHECK_THAT(error(step, {.extra_steps = {{.name = "a", .graph = step}, {.name = "a", .graph = step}}}).text,
             Contains("two extra steps are named a"));
  CHECK_THAT(error(step, {.extra_steps = {{.name = "a", .graph = step, .every = 0}}}).text,
             Contains("every of an extra step is 0"));
  CHECK(error(step, {.extra_steps = {{.name = "a", .graph = step}}}).label == "state_shared");
  CHECK_THAT(error(step, {.save_every = 0}).text, Contains("save_every is 0") && Contains("[train_options]"));
  const Evaluation never{.graph = model.g.finish(), .batches = batch, .every = 0};
  CHECK_THAT(error(step, {.evaluation = never}).text, Contains("evaluation.every is 0"));
  const Evaluation of_nothing{.graph = model.g.finish(), .batches = {}};
  CHECK_THAT(error(step, {.evaluation = of_nothing}).text, Contains("evaluation.batches is not given"));
  const Graph other_outputs{"other_outputs"};
  other_outputs.output("y", other_outputs.input("x", f32, {3}));
  const Evaluation lossless{.graph = other_outputs.finish(), .batches = batch};
  CHECK_THAT(error(step, {.evaluation = lossless}).text, Contains("'other_outputs' has no output 'loss'"));
  Trainer trainer(step, model.start(step));
  CHECK(failure_of([&] { trainer.evaluate(); }).label == "train_options");

  const ScratchFolder scratch;
  const HostTensor other(f32, {3});
  const std::vector states{view_of("w", other)};
  const CheckpointStore store(scratch / "run/checkpoints");
  store.save({.step = 1, .data_position = 1, .config = {{"width", "8"}}}, states);
  CHECK(error(step, {.folder = RunFolder(scratch / "run")}).label == "safetensors_missing");
  const auto refused = error(step, {.folder = RunFolder(scratch / "run"), .settings = {.fixed = {{"width", "9"}}}});
  CHECK(refused.label == "train_resume");
  CHECK_THAT(refused.text, Contains("has width=8, this run width=9"));
}
