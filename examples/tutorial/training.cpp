#include <lathe/lathe.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

using namespace lathe;

/// Whether two numbers from 0 to 1 differ by more than a half: 64 pairs, the same for one seed.
Tensors batch(std::int64_t seed) {
  HostTensor x(f32, {64, 2}), y(f32, {64});
  for (std::int64_t i = 0; i < 64; ++i) {
    const double a = static_cast<double>((seed * 64 + i) * 29 % 101) / 100;
    const double b = static_cast<double>((seed * 64 + i) * 71 % 103) / 102;
    x.set(2 * i, a), x.set(2 * i + 1, b);
    y.set(i, std::abs(a - b) > 0.5 ? 1 : 0);
  }
  return {{"x", x}, {"y", y}};
}

int main() {
  const Dim n{"n"}, hidden{"hidden", 32};
  Graph g{"far_apart"};
  const Tensor x = g.input("x", f32, {n, 2});
  const Tensor y = g.input("y", f32, {n});
  const nn::Linear first(g, "first", 2, hidden), last(g, "last", hidden, 1);
  const Tensor logits = last(relu(first(x))).squeeze(-1);
  const Tensor loss = binary_cross_entropy_with_logits(logits, y);
  g.output("loss", loss);

  const ir::Graph step = training_step(g, loss, AdamW{.lr = 0.02});
  Executable train = compile(step);
  train.parameters().set(initial_values(step, g.initializers(), /*seed=*/1));
  Executable evaluate = compile(g.finish(), {.mode = Mode::evaluation, .parameters = train.parameters()});

  const std::filesystem::path file = "far_apart.safetensors";
  for (int i = 1; i <= 300; ++i) {
    const Tensors result = train.run(batch(i));
    if (i % 100 == 0)
      std::printf("step %d: the loss is %s 0.2\n", i, result.at("loss").get(0) < 0.2 ? "below" : "above");
    if (i == 200) train.parameters().save(file);
  }
  const double whole = evaluate.run(batch(1000)).at("loss").get(0);

  Executable again = compile(step, {.parameters = Parameters::load(file)});
  for (int i = 201; i <= 300; ++i) (void)again.run(batch(i));
  evaluate.use(again.parameters());
  const double resumed = evaluate.run(batch(1000)).at("loss").get(0);
  std::printf("trained in one go and resumed: %s\n", whole == resumed ? "the same bits" : "other numbers");
  std::filesystem::remove(file);
}
