#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "frontend/initial_values.h"
#include "frontend/nn/linear.h"
#include "frontend/train/step.h"
#include "runtime/compile.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"

/// Several programs on one store compute the same as on separate stores: two training steps, a step and an
/// evaluation. (Two generators: tests/pretrained/generation/generator_test.cpp.)
using namespace lathe;
using Catch::Contains;
using test::error_label;

namespace {

struct Mlp : nn::Module {
  Mlp(const Module& parent, std::string_view name, const Dim& in, const Dim& out)
      : Module(parent, name, "Mlp"),
        up(*this, "up", in, 8, {.dtype = f64}),
        down(*this, "down", 8, out, {.dtype = f64}) {}
  Tensor operator()(const Tensor& x) const { return down(tanh(up(x))); }
  nn::Linear up, down;
};

Tensor judged(const Tensor& logits, double target) {
  return binary_cross_entropy_with_logits(logits, logits * 0 + target);
}

/// A generator and a critic of its output, each with a loss and an optimizer.
struct Gan {
  nn::Module root{"Gan"};
  Mlp generator{root, "generator", 3, 2}, critic{root, "critic", 2, 1};
  Dim B{"B"};

  ir::Graph critic_step(const std::string& name) const {
    Graph g{"judging"};
    const Tensor fake = tanh(generator(g.input("z", f64, {B, 3}))).detach();
    return training_step(g, judged(critic(g.input("x", f64, {B, 2})), 1) + judged(critic(fake), 0),
                         Adam{.lr = 2e-2, .beta1 = 0.5}, {.name = name, .trainable = nn::trainable(critic)});
  }
  ir::Graph generator_step(const std::string& name) const {
    Graph g{"making"};
    return training_step(g, judged(critic(tanh(generator(g.input("z", f64, {B, 3})))), 1),
                         Adam{.lr = 1e-2, .beta1 = 0.5}, {.name = name, .trainable = nn::trainable(generator)});
  }
};

HostTensor drawn(std::string_view name, std::int64_t columns, std::uint64_t seed) {
  return initial_value(Init::normal({.deviation = 1}), name, f64, {5, columns}, seed);
}

test::KernelStore& kernels() {
  static test::KernelStore store;
  return store;
}

Executable compiled(const ir::Graph& graph, const Parameters& store, bool share = false) {
  return compile(graph, {.parameters = store, .share_states = share, .threads = 1, .cache = &kernels()});
}

/// Alternates both steps and returns all values of the store.
Tensors train(Executable& judging, Executable& making, const Parameters& weights) {
  for (std::uint64_t turn = 0; turn < 6; ++turn) {
    judging.run({{"x", drawn("x", 2, turn)}, {"z", drawn("z", 3, turn)}});
    if (turn % 2 == 0) making.run({{"z", drawn("other z", 3, turn)}});
  }
  return weights.values();
}

}  // namespace

TEST_CASE("two training steps on one store: named optimizers count their own steps") {
  const Gan gan;
  const ir::Graph critic = gan.critic_step("critic"), generator = gan.generator_step("generator");
  Parameters one(gan.root.initial_values(1)), other(gan.root.initial_values(1));
  Executable judging = compiled(critic, one), making = compiled(generator, one);
  one.set(initial_states(critic, 1));
  one.set(initial_states(generator, 1));
  Executable judging_alone = compiled(critic, other), making_alone = compiled(generator, other.borrowed());
  judging_alone.parameters().set(initial_states(critic, 1));
  making_alone.parameters().set(initial_states(generator, 1));

  const Tensors together = train(judging, making, one), apart = train(judging_alone, making_alone, other);
  CHECK(together.at("optimizer.critic.step").get_int(0) == 6);
  CHECK(together.at("optimizer.generator.step").get_int(0) == 3);
  for (const auto& [name, value] : gan.root.initial_values(1)) {
    INFO(name);
    CHECK(together.at(name).same_bits(apart.at(name)));
    CHECK_FALSE(together.at(name).same_bits(value));
  }
}

TEST_CASE("two programs that update one state of a store are rejected, unless they may share it") {
  const Gan gan;
  const ir::Graph critic = gan.critic_step(""), generator = gan.generator_step("");
  Parameters store(gan.root.initial_values(1));
  std::optional<Executable> judging = compiled(critic, store);
  std::string text;
  CHECK(error_label([&] { compiled(generator, store); }, &text) == "state_shared");
  CHECK_THAT(text, Contains("@judging and @making work on one store and both update optimizer.step") &&
                       Contains("TrainingOptions::name"));
  Executable making = compiled(generator, Parameters());
  CHECK(error_label([&] { making.use(store); }) == "state_shared");
  CHECK_FALSE(making.parameters() == store);
  store.set(initial_states(critic, 1));
  const Parameters borrowed = store.borrowed();
  CHECK(borrowed.contains("critic.up.weight"));
  CHECK_FALSE(borrowed.contains("optimizer.step"));  // otherwise both would share its memory
  CHECK(error_label([&] { making.use(borrowed); }).empty());
  CHECK(error_label([&] { compiled(generator, store, true); }).empty());
  CHECK(error_label([&] { compiled(gan.generator_step("other"), store); }).empty());

  judging->use(Parameters());  // it detached; so does one that is destroyed
  CHECK(error_label([&] { making.use(store); }).empty());
  making.use(Parameters());
  judging->use(store);
  judging.reset();
  CHECK(error_label([&] { making.use(store); }).empty());
}

TEST_CASE("random draws of several programs come from one random state, which each advances") {
  const auto draws = [](std::string_view name) {
    Graph g{name};
    g.output("drawn", g.random_normal({4}, f64));
    return g.finish();
  };
  Parameters store;
  Executable one = compiled(draws("one"), store), other = compiled(draws("other"), store);
  store.set(initial_states(draws("one"), 3));
  const HostTensor first = one.run({}).at("drawn"), second = other.run({}).at("drawn");
  CHECK_FALSE(first.same_bits(second));
  CHECK(store.get("rng").get_int(1) == 2);
}

TEST_CASE("a training step and an evaluation on one store: the evaluation changes nothing, and sees each update") {
  const nn::Module root("Model");
  const Mlp model(root, "mlp", 3, 1);
  Graph g{"regression"};
  const Tensor x = g.input("x", f64, {Dim{"B"}, 3});
  const Tensor y = dropout(model(x), g.random_state(), 0.25);
  const Tensor loss = square(y - 1).mean();
  g.output("y", y);
  const ir::Graph step = training_step(g, loss, AdamW{.lr = 1e-2});
  const auto start = [&] {
    Tensors values = initial_values(step, g.initializers(), 5);
    return Parameters(std::move(values));
  };
  const Parameters shared = start(), alone = start();
  Executable train = compiled(step, shared), train_alone = compiled(step, alone);
  Executable evaluate = compile(g.finish(), {.mode = Mode::evaluation, .parameters = shared, .cache = &kernels()});
  for (std::uint64_t turn = 0; turn < 4; ++turn) {
    const Tensors batch{{"x", drawn("x", 3, turn)}};
    const HostTensor seen = evaluate.run(batch).at("y");
    Executable apart = compile(
        g.finish(), {.mode = Mode::evaluation, .parameters = Parameters(alone.values()), .cache = &kernels()});
    CHECK(seen.same_bits(apart.run(batch).at("y")));
    CHECK(train.run(batch).at("loss").same_bits(train_alone.run(batch).at("loss")));
  }
  for (const auto& [name, value] : alone.values()) {
    INFO(name);
    CHECK(shared.get(name).same_bits(value));
  }
}

TEST_CASE("the summary names trained and frozen parameters") {
  const nn::Module root("Model");
  const nn::Linear a(root, "a", 4, 4), b(root, "b", 4, 1);
  Graph g{"frozen"};
  const Tensor loss = square(b(a(g.input("x", f32, {Dim{"n"}, 4})))).mean();
  a.freeze();
  std::string note;
  const ir::Graph step =
      training_step(g, loss, SGD{.lr = 0.1}, {.note = [&](std::string_view text) { note = text; }});
  CHECK(note == "trains 2 of 4 parameters, 5 of 25 numbers; frozen: a.weight, a.bias");
  Parameters weights(root.initial_values(1));
  Executable exe = compiled(step, weights);
  CHECK(exe.summary().trained == std::vector<std::string>{"b.weight", "b.bias"});
  CHECK(exe.summary().not_trained == std::vector<std::string>{"a.weight", "a.bias"});
  weights.set(initial_states(step, 1));
  const Tensors before = weights.values();
  exe.run({{"x", HostTensor::from({1, 4}, {1, 1, 1, 1})}});
  CHECK(weights.get("a.weight").same_bits(before.at("a.weight")));
  CHECK_FALSE(weights.get("b.weight").same_bits(before.at("b.weight")));
}

TEST_CASE("a parameter that no result depends on needs no value") {
  const nn::Module root("Model");
  const nn::Linear wrong(root, "wrong", 3, 2), right(root, "right", 4, 2);
  Graph g{"caught"};
  const Tensor x = g.input("x", f32, {Dim{"n"}, 4});
  CHECK(error_label([&] { wrong(x); }) == "linear_inner");
  g.output("y", right(x));
  Executable exe = compiled(g.finish(), Parameters());
  exe.parameters().set("right.weight", HostTensor(f32, {2, 4}));
  std::string text;
  CHECK(error_label([&] { exe.run({{"x", HostTensor(f32, {1, 4})}}); }, &text) == "state_unset");
  CHECK_THAT(text, Contains("right.bias"));
  exe.parameters().set("right.bias", HostTensor::from({2}, {1, 2}));
  CHECK(exe.run({{"x", HostTensor(f32, {1, 4})}}).at("y").get(1) == 2);
  exe.parameters().set("wrong.weight", HostTensor(f32, {2, 3}));  // not used, but declared
  CHECK(exe.run({{"x", HostTensor(f32, {1, 4})}}).at("y").get(1) == 2);
}

TEST_CASE("a size that arguments only give combined with others is given with the run") {
  Graph g{"rows"};
  const Dim B{"B"}, T{"T"};
  const Tensor x = g.input("x", f32, {B * T, 4});
  g.output("y", x.reshape({B, T, 4}).sum(1));
  Executable exe = compile(g.finish(), {.cache = &kernels()});
  const Tensors inputs{{"x", HostTensor(f32, {6, 4})}};
  std::string text;
  CHECK(error_label([&] { exe.run(inputs); }, &text) == "dim_unbound");
  CHECK_THAT(text, Contains("dim 0 of x: f32[B*T, 4] does not determine it alone") && Contains("{{\"B\", 8}}"));
  CHECK(exe.run(inputs, {{"B", 2}}).at("y").shape() == std::vector<std::int64_t>{2, 4});
  CHECK(exe.run(inputs, {{"T", 2}}).at("y").shape() == std::vector<std::int64_t>{3, 4});
  CHECK(exe.run(inputs, {{"B", 6}, {"T", 1}}).at("y").shape() == std::vector<std::int64_t>{6, 4});
  CHECK(error_label([&] { exe.run(inputs, {{"B", 4}}); }) == "dim_conflict");
  CHECK(error_label([&] { exe.run(inputs, {{"C", 4}}); }) == "dim_unknown");
}
